# Owns: how the official Python client 1.x is connected for the checks of legacy clients before a modern server, what it
# writes down of what it is asked and told, and how its scripts talk with the runner.
# Does not own: the transports (reach_legacy.py), the checks (bridged_*.py), or what is right (scenarios/bridged-target.mjs). The TypeScript client's are in
# bridged.mjs, under the same names where they check the same.

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

from mcp import ClientSession, McpError
from mcp.types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ErrorData,
    Implementation,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingContextCapability,
    SamplingToolsCapability,
    ServerNotification,
    TextContent,
    ToolUseContent,
)

from reach_legacy import reach, way_of

URL, TARGET = sys.argv[1], json.loads(sys.argv[2])
WAY = way_of(URL)
# Over anything else, a session is a connection, and there is nothing that could be done by hand or taken up again.
HAS_SESSIONS = WAY == "http"
# What only HTTP at the server shows: mirrored headers.
SERVER_OVER_HTTP = TARGET["ways"]["upstream"] == "http"
# Not so in a run without the proxy, where the server itself serves legacy sessions.
BRIDGED = sys.argv[3] == "bridged"
LATEST = "2025-11-25"
CALL = timedelta(seconds=10)
TOLD_SECONDS = 6

SAMPLED = CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="none", stopReason="endTurn")
USES = CreateMessageResultWithTools(
    role="assistant",
    content=[ToolUseContent(type="tool_use", id="use-1", name="lookup", input={"city": "Paris"})],
    model="none",
    stopReason="toolUse",
)
ALL = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}}


def check(name, right, detail=""):
    print(json.dumps({"check": name, "right": bool(right), "detail": detail if isinstance(detail, str) else repr(detail)}), flush=True)


def same(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}\n     got {actual!r}")


async def ask_runner(question, **details):
    print(json.dumps({"ask": question, **details}), flush=True)
    return json.loads(await asyncio.to_thread(sys.stdin.readline))


async def step(name, body):
    try:
        await body
    except Exception as error:  # whatever a step throws is a failed check of its name
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        check(name, False, f"{type(error).__name__}: {error}")


class User:
    """A user with a client: what it was `asked` and `told`, in order. `answer_to`: message -> answer, or an error."""

    def __init__(self, token="main", silent=False):
        self.token = token
        self.silent = silent
        self.asked, self.told = [], []
        self.news = asyncio.Condition()
        self.answer_to = None
        self.refuses = None
        self.stack = AsyncExitStack()

    async def open(self, session=None, end=True):
        headers = {} if session is None else {"mcp-session-id": session, "mcp-protocol-version": LATEST}
        streams = await self.stack.enter_async_context(reach(URL, f"token-{self.token}", headers, terminate_on_close=end))
        read, write, self.session_id = streams
        asked = {"elicitation_callback": self.elicit, "sampling_callback": self.sample, "list_roots_callback": self.roots}
        tools = SamplingCapability(tools=SamplingToolsCapability(), context=SamplingContextCapability())
        client = ClientSession(
            read,
            write,
            CALL,
            logging_callback=self.log,
            message_handler=self.hear,
            client_info=Implementation(name="interop-python-bridged", version="1.0.0"),
            **({} if self.silent else {**asked, "sampling_capabilities": tools}),
        )
        self.client = await self.stack.enter_async_context(client)
        self.begun = None if session is not None else await self.client.initialize()
        return self

    async def close(self):
        await self.stack.aclose()

    async def elicit(self, _, params):
        if params.mode == "url":
            self.asked.append({"kind": "url", "message": params.message, "url": params.url, "elicitationId": params.elicitationId})
        else:
            self.asked.append({"kind": "form", "message": params.message})
        if self.refuses is not None:
            return ErrorData(code=-1, message=self.refuses)
        return ElicitResult(**self.answer_to(params.message))

    async def sample(self, _, params):
        self.asked.append({"kind": "sampling", "message": texts_of(block for message in params.messages for block in blocks(message.content))})
        if self.refuses is not None:
            return ErrorData(code=-1, message=self.refuses)
        return USES if params.tools else SAMPLED

    async def roots(self, _):
        self.asked.append({"kind": "roots"})
        return ListRootsResult(roots=[Root(uri="file:///ada", name="ada")])

    async def log(self, params):
        await self.note(f"{params.level}: {params.data}")

    async def hear(self, message):
        if not isinstance(message, ServerNotification):
            return
        method, params = message.root.method, message.root.params
        if method.endswith("/list_changed"):
            await self.note(method.split("/")[1])
        elif method == "notifications/resources/updated":
            await self.note(f"updated {params.uri}")
        elif method == "notifications/elicitation/complete":
            await self.note(f"completed {params.elicitationId}")

    async def note(self, what):
        async with self.news:
            self.told.append(what)
            self.news.notify_all()

    async def hears(self, what, since=0):
        """Whether the user is told that, counted from `since` on."""
        async with self.news:
            try:
                await asyncio.wait_for(self.news.wait_for(lambda: what in self.told[since:]), TOLD_SECONDS)
            except TimeoutError:
                pass
            return what in self.told[since:]

    async def call(self, one, **options):
        if "tool" in one:
            return await self.client.call_tool(one["tool"], one.get("arguments", {}), **options)
        if "prompt" in one:
            return await self.client.get_prompt(one["prompt"], one.get("arguments"))
        return await self.client.read_resource(one["resource"])

    async def tool(self, name, /, **arguments):
        return await self.client.call_tool(name, arguments)


def blocks(content):
    return content if isinstance(content, list) else [content]


def texts_of(content):
    return "\n".join(getattr(block, "text", "") for block in content)


def text_of(result):
    if hasattr(result, "messages"):
        return texts_of(message.content for message in result.messages)
    return texts_of(result.content if hasattr(result, "content") else result.contents)


async def code_of(call):
    try:
        return await call
    except McpError as error:
        return error.error.code


def in_order(questions):
    return sorted(json.dumps(question, sort_keys=True) for question in questions)
