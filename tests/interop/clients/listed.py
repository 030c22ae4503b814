# Owns: what the official Python client (mcp 2.x, 2026-07-28) sees of a server's tools at argv[1]: those of argv[2], in their order,
# which can be called, and none of the others, which are refused.
# Does not own: what the server lists (fixtures/bad-tools.mjs), or the other clients (listed.mjs, listed-legacy.mjs).

import asyncio
import json
import sys

from mcp import Client
from mcp.shared.exceptions import MCPError

from reach_modern import reach

URL, WANTED = sys.argv[1], json.loads(sys.argv[2])


def check(name, right, detail=""):
    print(json.dumps({"check": name, "right": bool(right), "detail": detail if isinstance(detail, str) else repr(detail)}), flush=True)


def same(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}\n     got {actual!r}")


async def refusal(client, name):
    try:
        result = await client.call_tool(name, {})
        return "no error", repr(result)
    except MCPError as error:
        return error.error.code, error.error.message


async def main():
    async with Client(reach(URL, "token-main"), mode="auto") as client:
        same("revision of the connection", client.protocol_version, "2026-07-28")
        tools = WANTED["tools"]
        listed = [tool.name for tool in (await client.list_tools()).tools]
        same(f"{len(tools)} tools are listed, in their order", listed, tools)
        for name in WANTED["called"]:
            result = await client.call_tool(name, {})
            same(f"tool {name} answers", result.content[0].text, f"ran {name}")
        for call in WANTED.get("unfit", []):
            result = await client.call_tool(call["name"], call["arguments"])
            right = result.is_error and call["at"] in result.content[0].text
            check(f"arguments of tool {call['name']} do not fit at {call['at']}, as a result says", right, result)
        faults = []
        for tool in WANTED["refused"]:
            code, message = await refusal(client, tool["name"])
            if code != -32602 or tool["at"] not in message:
                faults.append(f"{tool['name']}: {code} {message}")
        if WANTED["refused"]:
            check(f"{len(WANTED['refused'])} other tools are refused, with the place in words", not faults, "\n".join(faults))


asyncio.run(main())
