# Owns: the checks that the official Python client 1.x (2025-11-25) makes against the legacy server that is described in
# argv[2] and reached at argv[1]; argv[3] says what happens to its session when the server restarts: `kept` or `lost`.
# Does not own: how it is reached (reach_legacy.py), or what the server is like (scenarios/targets.mjs).

import asyncio
import json
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from reach_legacy import reach, way_of

WHERE, TARGET, SESSION = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
# Elsewhere a session is a connection, and ends with it.
HAS_SESSIONS = way_of(WHERE) == "http"


def check(name, right, detail=""):
    detail = detail if isinstance(detail, str) else repr(detail)
    print(json.dumps({"check": name, "right": bool(right), "detail": detail}), flush=True)


def same(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}, got {actual!r}")


async def ask_runner(question, **details):
    print(json.dumps({"ask": question, **details}), flush=True)
    return json.loads(await asyncio.to_thread(sys.stdin.readline))


async def step(name, body):
    try:
        await body
    except Exception as error:  # whatever it is, it is a failed check
        check(name, False, f"{type(error).__name__}: {error}")


async def elicit(context, params):
    return ElicitResult(action="accept", content={"name": "Ada"})


async def sample(context, params):
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="none")


async def roots(context):
    return ListRootsResult(roots=[Root(uri="file:///ada", name="ada")])


class Connection:
    def __init__(self):
        self.stack = AsyncExitStack()

    async def open(self):
        read, write, self.session_id = await self.stack.enter_async_context(reach(WHERE))
        client = ClientSession(read, write, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots)
        self.client = await self.stack.enter_async_context(client)
        self.info = (await self.client.initialize()).serverInfo
        return self

    async def close(self):
        await self.stack.aclose()


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


def first_line(result):
    return text_of(result).split("\n")[0]


async def calls(connection):
    client = connection.client
    same("server name", connection.info.name, TARGET["serverName"])
    listed = [tool.name for tool in (await client.list_tools()).tools]
    for name in TARGET["tools"]:
        check(f"tool {name} is listed", name in listed, listed)
    for call in TARGET["calls"]:
        result = await client.call_tool(call["name"], call["arguments"])
        if "text" in call:
            same(f"tool {call['name']} answers", first_line(result), call["text"])
        same(f"tool {call['name']} is {'an' if call.get('isError') else 'no'} error", result.isError, call.get("isError", False))
    await client.send_ping()
    if "reads" not in TARGET:
        return
    for read in TARGET["reads"]:
        contents = (await client.read_resource(read["uri"])).contents
        check(f"resource {read['uri']} has its text", read["text"] in contents[0].text, contents)
    await client.set_logging_level("warning")
    check("a log level is accepted", True)


async def progress(client):
    seen = []

    async def note(amount, total, message):
        seen.append(amount)

    wanted = TARGET["progress"]
    await client.call_tool(wanted["name"], wanted["arguments"], progress_callback=note)
    same("progress arrives in order", seen, wanted["steps"])


async def together(client):
    messages = [f"m{index}" for index in range(20)]
    name = TARGET["echo"]["name"]
    answers = await asyncio.gather(*(client.call_tool(name, {"message": message}) for message in messages))
    same("calls at once each get their own", [text_of(a) for a in answers], [f"Echo: {m}" for m in messages])


async def streams(when):
    """They are opened in the background, and a question that is asked on one waits for that."""
    if HAS_SESSIONS:
        check(f"the streams of the session are open{when}", (await ask_runner("streams-stand"))["right"])


async def questions(client, when):
    for wanted in TARGET["questions"]:
        await step(f"question of {wanted['name']}{when}", question(client, wanted, when))


async def question(client, wanted, when):
    name = wanted["name"]
    result = await asyncio.wait_for(client.call_tool(name, wanted["arguments"]), 10)
    check(f"{name} got its answer{when}", wanted["text"] in text_of(result), result)
    seen = await ask_runner("asked-on", method=wanted["method"], verb=wanted["verb"])
    check(f"{name} asked on the stream of {wanted['verb']}{when}", seen["right"], seen.get("detail", ""))


async def restart(connection):
    call = TARGET["calls"][0]
    before = connection.session_id()
    if SESSION == "lost":
        # This SDK's client does not outlive its session, so it is not asked to.
        await connection.close()
        await ask_runner("restart")
        again = await Connection().open()
        check("another session is another", again.session_id() != before, before)
        await step("calls in another session", calls(again))
        return again
    await ask_runner("restart")
    same("a call after the restart is answered", first_line(await connection.client.call_tool(call["name"], call["arguments"])), call["text"])
    same("the session is the same", connection.session_id(), before)
    await streams(" after the restart")
    await questions(connection.client, " after the restart")
    return connection


async def main():
    connection = await Connection().open()
    if HAS_SESSIONS:
        check("there is a session", connection.session_id() is not None)
    await step("calls", calls(connection))
    if "progress" in TARGET:
        await step("progress", progress(connection.client))
    if "echo" in TARGET:
        await step("calls at once", together(connection.client))
    if "questions" in TARGET:
        await streams("")
        await questions(connection.client, "")
    if HAS_SESSIONS:
        connection = await restart(connection)
    await connection.close()
    check("the session is ended", True)
    if way_of(WHERE) == "stdio":
        same("nothing that was started is left", (await ask_runner("all-gone"))["left"], [])


asyncio.run(main())
