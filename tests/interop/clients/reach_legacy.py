# Owns: the transport by which the official Python client 1.x reaches what the runner names: the URL of a Streamable HTTP
# endpoint, `{"sse": URL}` of an old HTTP+SSE one, or `{"command": [...]}`, a stdio server that the client starts.
# Does not own: the clients (legacy_client.py, bridged.py).

import json
from contextlib import asynccontextmanager

from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


def way_of(where):
    """Only the sessions of Streamable HTTP outlive a connection."""
    return "http" if not where.startswith("{") else "sse" if "sse" in json.loads(where) else "stdio"


@asynccontextmanager
async def reach(where, token=None, headers=None, **options):
    """Gives the two streams, and what tells the id of the session. `options`: of Streamable HTTP."""
    headers = (headers or {}) | ({} if token is None else {"Authorization": f"Bearer {token}"})
    way = way_of(where)
    if way == "http":
        async with streamablehttp_client(where, headers=headers, **options) as streams:
            yield streams
    elif way == "sse":
        async with sse_client(json.loads(where)["sse"], headers=headers) as (read, write):
            yield read, write, lambda: None
    else:
        command, *args = json.loads(where)["command"]
        async with stdio_client(StdioServerParameters(command=command, args=args)) as (read, write):
            yield read, write, lambda: None
