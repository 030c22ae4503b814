# Owns: the checks that the official Python client (mcp 2.x) makes, in 2026-07-28, against the server that is described in
# argv[2] and reached at argv[1]: the same checks, by the same names, as the TypeScript client's.
# Does not own: how it is reached (reach_modern.py), or what the server is like.

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from reach_modern import reach

WHERE, TARGET, MODE = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]


def check(name, right, detail=""):
    print(json.dumps({"check": name, "right": bool(right), "detail": detail if isinstance(detail, str) else repr(detail)}), flush=True)


def same(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}\n     got {actual!r}")


async def ask_runner(question, **details):
    print(json.dumps({"ask": question, **details}), flush=True)
    return json.loads(await asyncio.to_thread(sys.stdin.readline))


@asynccontextmanager
async def connect(token):
    async with Client(reach(WHERE, token), mode="legacy" if MODE == "legacy" else "auto") as client:
        yield client


def text_of(result):
    return next((block.text for block in result.content if block.type == "text"), None)


async def discovery(client):
    if MODE != "legacy":
        same("revision of the connection", client.protocol_version, "2026-07-28")
    same("server name", client.server_info.name if client.server_info else None, TARGET["serverName"])
    for capability in TARGET["capabilities"]:
        check(f"capability {capability}", getattr(client.server_capabilities, capability) is not None)


async def tools(client):
    listed = [tool.name for tool in (await client.list_tools()).tools]
    for name in TARGET["tools"]:
        check(f"tool {name} is listed", name in listed, listed)
    for call in TARGET["calls"]:
        result = await client.call_tool(call["name"], call["arguments"])
        if "text" in call:
            same(f"tool {call['name']} answers", text_of(result), call["text"])
        same(f"tool {call['name']} is {'an' if call.get('isError') else 'no'} error", result.is_error, call.get("isError", False))
        if "structured" in call:
            same(f"tool {call['name']} gives structured content", result.structured_content, call["structured"])


async def resources(client):
    listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
    templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
    for uri in TARGET["resources"]:
        check(f"resource {uri} is listed", uri in listed, listed)
    for uri in TARGET["templates"]:
        check(f"template {uri} is listed", uri in templates, templates)
    for read in TARGET["reads"]:
        contents = (await client.read_resource(read["uri"])).contents
        same(f"resource {read['uri']} has its URI", str(contents[0].uri), read["uri"])
        check(f"resource {read['uri']} has its text", read["text"] in contents[0].text, contents)


async def prompts(client):
    listed = [prompt.name for prompt in (await client.list_prompts()).prompts]
    for name in TARGET["prompts"]:
        check(f"prompt {name} is listed", name in listed, listed)
    prompt = TARGET["prompt"]
    messages = (await client.get_prompt(prompt["name"], prompt["arguments"])).messages
    same(f"prompt {prompt['name']} has its text", messages[0].content.text, prompt["text"])


async def completion(client):
    wanted = TARGET["completion"]
    ref = PromptReference(type="ref/prompt", name=wanted["ref"]["name"])
    result = await client.complete(ref, wanted["argument"], wanted.get("context"))
    same("completion gives the values", result.completion.values, wanted["values"])


async def progress(client):
    seen = []

    async def note(amount, total, message):
        seen.append(amount)

    wanted = TARGET["progress"]
    result = await client.call_tool(wanted["name"], wanted["arguments"], progress_callback=note)
    check("the call with progress ends well", not result.is_error, result)
    same("progress arrives in order", seen, wanted["steps"])


async def errors(client):
    try:
        unknown = await client.call_tool("no-such-tool", {})
        check("an unknown tool is an error", unknown.is_error, unknown)
    except MCPError as error:
        same("an unknown tool is an error", error.error.code, -32602)
    if "failing" in TARGET:
        failed = await client.call_tool(TARGET["failing"], {})
        check("a failing tool says isError", failed.is_error, failed)
    wanted = TARGET["missing"]["legacyCode" if MODE == "legacy" else "modernCode"]
    try:
        same("a missing resource has its code", await client.read_resource(TARGET["missing"]["uri"]), wanted)
    except MCPError as error:
        same("a missing resource has its code", error.error.code, wanted)


async def cancellation(client):
    slow = TARGET["slow"]
    started = asyncio.Event()

    async def note(amount, total, message):
        started.set()

    call = asyncio.create_task(client.call_tool(slow["name"], slow["arguments"], progress_callback=note))
    await asyncio.wait_for(started.wait(), 10)
    call.cancel()
    try:
        await call
        check("a cancelled call is rejected", False, "it gave a result")
    except asyncio.CancelledError:
        check("a cancelled call is rejected", True)
    # A modern server is told by the end of the stream, where there is one.
    line = {"line": slow["line"]} if "line" in slow else {}
    seen = await ask_runner("cancelled-upstream" if TARGET["modern"] else "cancelled", tool=slow["name"], **line)
    check("the server was told of the cancellation", seen["right"], seen.get("detail", ""))
    after = TARGET["calls"][0]
    result = await client.call_tool(after["name"], after["arguments"])
    same("a call after the cancelled one answers", text_of(result), after["text"])


async def two_users(_):
    echo = TARGET["echo"]["name"]
    async with connect("token-alice") as alice, connect("token-bob") as bob:
        users = {"alice": alice, "bob": bob}

        async def one(name, round):
            got = text_of(await users[name].call_tool(echo, {"message": f"{name} {round}"}))
            return None if got == f"Echo: {name} {round}" else f"{name} {round} got {got}"

        answers = await asyncio.gather(*(one(name, round) for name in users for round in range(10)))
        same("twenty calls of two users at once get their own answers", [line for line in answers if line], [])
        if "session" in TARGET:
            session = TARGET["session"]
            await asyncio.gather(*(user.call_tool(session["keep"], {"value": name}) for name, user in users.items()))
            recalled = await asyncio.gather(*(user.call_tool(session["recall"], {}) for user in users.values()))
            same("each user has a session of its own that lasts", [text_of(result) for result in recalled], ["alice", "bob"])
        if not TARGET["modern"] or TARGET["ways"]["upstream"] == "stdio":
            seen = await ask_runner("one-user-per-session")
            check("no upstream session served two users", seen["right"], seen.get("detail", ""))


async def restart(client):
    echo = TARGET["echo"]["name"]

    async def call(message):
        return text_of(await client.call_tool(echo, {"message": message}))

    same("a call before the restart answers", await call("before restart"), "Echo: before restart")
    await ask_runner("restart")
    same("the call after the restart answers", await call("after restart"), "Echo: after restart")
    for message in ["before restart", "after restart"]:
        seen = await ask_runner("ran", tool=echo, message=message)
        same(f"the tool ran once, {message}", seen["times"], 1)


# Each with what it needs to know of the server.
STEPS = {
    discovery: "serverName",
    tools: "tools",
    resources: "resources",
    prompts: "prompts",
    completion: "completion",
    progress: "progress",
    errors: "missing",
    cancellation: "slow",
    two_users: "echo",
    restart: "echo",
}


async def main():
    # A legacy client has no way to survive the loss of its session, and neither has one that talks to the server itself.
    lasts = MODE != "legacy" and TARGET["ways"]["proxied"]
    async with connect("token-main") as client:
        for step, needed in STEPS.items():
            if needed not in TARGET or (step is restart and not lasts):
                continue
            try:
                await step(client)
            except Exception as error:  # whatever a step throws is a failed check of its name
                check(step.__name__, False, f"{type(error).__name__}: {error}")


asyncio.run(main())
