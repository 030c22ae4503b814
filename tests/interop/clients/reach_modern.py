# Owns: the transport by which the official Python client 2.x reaches what the runner names: the URL of a Streamable HTTP
# endpoint, or `{"command": [...]}`, a stdio server that the client starts.
# Does not own: the clients (modern_client.py, listen_client.py, questions_client.py).

import json
from contextlib import asynccontextmanager

import httpx2
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def reach(where, token, timeout=30):
    """The token says who the user is; a program that was started has only one user."""
    if where.startswith("{"):
        command, *args = json.loads(where)["command"]
        async with stdio_client(StdioServerParameters(command=command, args=args)) as streams:
            yield streams
        return
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=timeout) as http:
        async with streamable_http_client(where, http_client=http) as streams:
            yield streams
