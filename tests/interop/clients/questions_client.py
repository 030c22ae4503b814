# Owns: the checks that the official Python client (mcp 2.x) makes, in 2026-07-28, while it answers, by the SDK's own means,
# what a server asks through the proxy at argv[1]: the same checks, by the same names, as the TypeScript client's.
# Does not own: how anything is reached (reach_modern.py), or what is asked (scenarios/asked.mjs).

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent

from reach_modern import reach

URL, HASTY_URL, ASKS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
OF_MODERN = ASKS.get("modern", False)
MODERN = HASTY_URL != "-" or OF_MODERN

CALL_SECONDS = 10
# A legacy client opens its stream in the background, and what the server asks on it before that is lost.
STREAM_SECONDS = 1
CALLS_AT_ONCE = 3

SAMPLED = CreateMessageResult(role="assistant", content=TextContent(type="text", text="Paris"), model="none", stop_reason="endTurn")
ROOTS = ListRootsResult.model_validate({"roots": [{"uri": "file:///ada", "name": "ada"}]})


def check(name, right, detail=""):
    print(json.dumps({"check": name, "right": bool(right), "detail": detail if isinstance(detail, str) else repr(detail)}), flush=True)


def same(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}\n     got {actual!r}")


async def ask_runner(question, **details):
    print(json.dumps({"ask": question, **details}), flush=True)
    return json.loads(await asyncio.to_thread(sys.stdin.readline))


class User:
    """Writes down what its client is `asked`, and answers for the user by `answer_to`: message -> answer, in its time."""

    def __init__(self, name=None):
        self.name = name
        self.asked = []
        self.kinds = set()
        self.answer_to = None
        self.client = None

    def note(self, **question):
        self.asked.append(question)
        self.kinds.add(question["kind"])

    async def elicit(self, _, params):
        if params.mode == "url":
            self.note(kind="url", message=params.message, url=params.url)
        else:
            self.note(kind="form", message=params.message)
        return ElicitResult(**await self.answer_to(params.message))

    async def sample(self, _, params):
        self.note(kind="sampling", message=texts_of(block for message in params.messages for block in blocks(message.content)))
        return SAMPLED

    async def list_roots(self, _):
        self.note(kind="roots")
        return ROOTS


@asynccontextmanager
async def connect(url, token, user, kinds=("elicit", "sample", "list_roots")):
    """A client of that user, which declares just these kinds of questions."""
    callbacks = {"elicit": "elicitation_callback", "sample": "sampling_callback", "list_roots": "list_roots_callback"}
    transport = reach(url, token, timeout=CALL_SECONDS)
    options = {callbacks[kind]: getattr(user, kind) for kind in kinds}
    async with Client(transport, mode="auto" if MODERN else "legacy", read_timeout_seconds=CALL_SECONDS, **options) as client:
        if not MODERN:
            await asyncio.sleep(STREAM_SECONDS)
        user.client = client
        yield user


def blocks(content):
    return content if isinstance(content, list) else [content]


def texts_of(content):
    return "\n".join(getattr(block, "text", "") for block in content)


def text_of(result):
    if hasattr(result, "messages"):
        return texts_of(message.content for message in result.messages)
    return texts_of(result.content if hasattr(result, "content") else result.contents)


def in_order(questions):
    return sorted(questions, key=lambda question: json.dumps(question, sort_keys=True))


def method_of(one):
    return "tools/call" if "tool" in one else "prompts/get" if "prompt" in one else "resources/read"


async def call(user, one, **options):
    if "tool" in one:
        return await user.client.call_tool(one["tool"], one.get("arguments", {}), **options)
    if "prompt" in one:
        return await user.client.get_prompt(one["prompt"], one.get("arguments", {}))
    return await user.client.read_resource(one["resource"])


async def one_case(user, one):
    user.asked.clear()
    steps = []

    async def answer(message):
        await asyncio.sleep(one.get("answerAfterMs", 0) / 1000)
        return one["answers"][message]

    async def note(amount, total, message):
        steps.append(amount)

    user.answer_to = answer
    await ask_runner("mark")
    result = await call(user, one, **({"progress_callback": note} if "progress" in one else {}))
    what, text = one["what"], text_of(result)
    right = all(part in text for part in one.get("says", [])) and getattr(result, "is_error", False) == one.get("isError", False)
    check(f"{what}: the result", right, result)
    if "progress" in one:
        same(f"{what}: the progress", steps, one["progress"])
    seen = await ask_runner("since-mark", method=method_of(one))
    same(f"{what}: how often the server ran it", seen["runs"], one.get("runs", 1))
    if "asked" not in one:
        return
    known = [question for question in user.asked if not of_its_own(question["kind"])]
    same(f"{what}: what the client was asked", in_order(known), in_order(question for round in one["asked"] for question in round))
    if MODERN:
        rounds = [[kind for kind in kinds if not of_its_own(kind)] for kinds in seen["rounds"]]
        expected = [sorted(question["kind"] for question in round) for round in one["asked"]]
        same(f"{what}: the rounds", [kinds for kinds in rounds if kinds], expected)


def of_its_own(kind):
    return kind == "roots" and ASKS.get("rootsOnItsOwn", False)


async def two_users():
    """Two users, each with several calls at once: everyone is asked what their own calls ask, and nothing runs twice."""
    tool, named = ASKS["users"]["tool"], ASKS["users"]["named"]
    numbers = range(1, CALLS_AT_ONCE + 1)
    async with connect(URL, "token-alice", User("alice")) as alice, connect(URL, "token-bob", User("bob")) as bob:
        for user in (alice, bob):

            async def answer(_, name=user.name):
                return {"action": "accept", "content": {"name": name}}

            user.answer_to = answer
        every = [(user, number) for user in (alice, bob) for number in numbers]

        async def one(user, number):
            arguments = {"user": user.name, "call": number} if named else {}
            return text_of(await call(user, {"tool": tool, "arguments": arguments}))

        await ask_runner("mark")
        results = await asyncio.gather(*(one(user, number) for user, number in every))
        wrong = [f"{user.name} {number}" for (user, number), text in zip(every, results) if user.name not in text]
        same("two users, several calls at once: each got the answer of its own user", wrong, [])
        for user in (alice, bob):
            name = user.name
            messages = [f"{name}, what is your name? ({number})" if named else ASKS["users"]["message"] for number in numbers]
            forms = [question for question in user.asked if question["kind"] == "form"]
            expected = [{"kind": "form", "message": message} for message in messages]
            same(f"two users: {name} was asked what {name}'s calls ask", in_order(forms), in_order(expected))
    seen = await ask_runner("since-mark", method="tools/call")
    same("two users: how often the server ran the calls", seen["runs"], len(every) * (2 if OF_MODERN else 1))
    if ASKS["sessions"]:
        sessions = await ask_runner("one-user-per-session")
        check("no upstream session served two users", sessions["right"], sessions.get("detail", ""))
    if not named:
        return
    # A modern server begins anew with each answer.
    began = [] if OF_MODERN else [f"began {tool} {user.name} {number}" for user, number in every]
    ended = [f"ended {tool} {user.name} {number} accept" for user, number in every]
    times = (await ask_runner("said", lines=began + ended))["times"]
    same("two users: the server says of each call once that it began and once that it ended", times, [1] * len(began + ended))
    if MODERN:
        own = await ask_runner("own-questions", tool=tool)
        check("two users: each question came in the answer to the call that asked it", own["right"], own.get("detail", ""))


async def abandoned():
    """A client that does not come back: the server hears of it, and what comes later is refused."""
    wanted = ASKS["abandoned"]
    tool, arguments = wanted["tool"], wanted["arguments"]
    async with connect(HASTY_URL, "token-carol", User()) as user:
        session = user.client.session
        first = await session.call_tool(tool, arguments, allow_input_required=True)
        same("a client that never comes back: it was asked", getattr(first, "result_type", None), "input_required")
        line = {"line": wanted["line"]} if "line" in wanted else {}
        seen = await ask_runner("given-up", tool=tool, **line)
        check("a client that never comes back: the server sees a cancel", seen["right"], seen.get("detail", ""))
        answers = {key: ElicitResult(action="accept", content={"name": "Carol"}) for key in first.input_requests}
        try:
            late = await session.call_tool(
                tool, arguments, input_responses=answers, request_state=first.request_state, allow_input_required=True
            )
            check("an answer that comes too late is refused", False, late)
        except MCPError as error:
            same("an answer that comes too late is refused", error.error.code, -32602)


async def undeclared():
    """A question of a kind that the client has not declared is no question for it: the call is refused, or fails where nothing
    says whose it is."""
    async with connect(URL, "token-main", User(), kinds=["sample"]) as user:
        try:
            result = await call(user, ASKS["undeclared"])
            check("a question of a kind that was not declared", ASKS["undeclared"].get("isError") and result.is_error, result)
        except MCPError as error:
            refused = {"code": error.error.code, "kinds": list((error.error.data or {}).get("requiredCapabilities", {}))}
            same("a question of a kind that was not declared", refused, {"code": -32021, "kinds": ["elicitation"]})


async def awaited():
    async with connect(URL, "token-dora", User()) as user:
        await one_case(user, ASKS["awaited"])


async def step(name, body):
    try:
        await body
    except Exception as error:  # whatever a step throws is a failed check of its name
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        check(name, False, f"{type(error).__name__}: {error}")


async def main():
    async with connect(URL, "token-main", User()) as user:
        for one in ASKS["cases"]:
            if MODERN or not one.get("modern", False):
                await step(one["what"], one_case(user, one))
        for on in ASKS["askedOn"]:
            seen = await ask_runner("asked-on", **on)
            check(f"{on['method']} was asked on a stream of {on['verb']}", seen["right"], seen.get("detail", ""))
        if "resumed" in ASKS:
            same("how many closed streams were taken up again", (await ask_runner("resumed"))["times"], ASKS["resumed"])
        if "users" in ASKS:
            await step("two users", two_users())
        if ASKS.get("rootsOnItsOwn", False):
            check("the client was asked for its roots at some time", "roots" in user.kinds)
    if not MODERN:
        return
    if "awaited" in ASKS:
        await step(ASKS["awaited"]["what"], awaited())
    if "abandoned" in ASKS:
        await step("a client that never comes back", abandoned())
    if "undeclared" in ASKS:
        await step("a kind that was not declared", undeclared())


asyncio.run(main())
