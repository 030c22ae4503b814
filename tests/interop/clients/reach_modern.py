# Owns: the transport by which the official Python client 2.x reaches what the runner names: the URL of a Streamable HTTP
# endpoint, `{"command": [...]}`, a stdio server that the client starts, or, where it speaks the legacy era, `{"sse": URL}` of an
# old HTTP+SSE one.
# Does not own: the clients (modern_client.py, listen_client.py, questions_client.py).

import json
from contextlib import asynccontextmanager

import httpx2
from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def reach(where, token, timeout=30):
    """The token says who the user is; a program that was started has only one user."""
    headers = {"Authorization": f"Bearer {token}"}
    named = json.loads(where) if where.startswith("{") else {}
    if "sse" in named:
        async with sse_client(named["sse"], headers=headers) as streams:
            yield streams
        return
    if "command" in named:
        command, *args = named["command"]
        async with stdio_client(StdioServerParameters(command=command, args=args)) as streams:
            yield streams
        return
    async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:
        async with streamable_http_client(where, http_client=http) as streams:
            yield streams
