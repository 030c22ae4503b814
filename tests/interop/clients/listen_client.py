# Owns: what the official Python client (mcp 2.x, 2026-07-28) hears of a server's changes while it listens: two listeners of
# one user, one that asked for something else, and one of another user; across a restart, to the end of the proxy. The
# checks have the names of the TypeScript client's.
# Does not own: how the server is made to change (scenarios/targets.mjs, `changes`), or how it is reached (reach_modern.py).

import asyncio
import json
import sys
from contextlib import AsyncExitStack

from mcp import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from reach_modern import reach

WHERE, TARGET = sys.argv[1], json.loads(sys.argv[2])
CHANGES, WAYS = TARGET["changes"], TARGET["ways"]
# A program that a client has started serves it alone, so that clients of one user share nothing.
SHARED = ["one"] if WAYS["front"] == "stdio" else ["one", "two"]
# What the server tells of its own accord when a session begins; over HTTP there is no stream yet on which it could be heard.
UNASKED = [] if WAYS["upstream"] == "http" else CHANGES.get("unasked", [])
HEAR_S = 10
# A restarted server is looked for again after 1, 2 and 4 seconds.
HEAR_AGAIN_S = 30
# How long to wait for what must not come.
QUIET_S = 0.4
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
NAMES = {ToolsListChanged: "tools", PromptsListChanged: "prompts", ResourcesListChanged: "resources"}


def check(name, right, detail=""):
    print(json.dumps({"check": name, "right": bool(right), "detail": detail if isinstance(detail, str) else repr(detail)}), flush=True)


def same(name, actual, expected):
    check(name, actual == expected, f"expected {expected!r}\n     got {actual!r}")


async def ask_runner(question, **details):
    print(json.dumps({"ask": question, **details}), flush=True)
    return json.loads(await asyncio.to_thread(sys.stdin.readline))


class Listener:
    """A client with the changes that it was told, in order: `tools`, `prompts`, `resources`, `updated URI`."""

    def __init__(self, name, client):
        self.name, self.client = name, client
        self.heard, self.logs = [], []
        self.condition = asyncio.Condition()
        self.open = {}

    @classmethod
    async def connect(cls, stack, name, token):
        listener = cls(name, None)
        listener.client = await stack.enter_async_context(Client(reach(WHERE, token), mode="auto", logging_callback=listener.log))
        return listener

    async def log(self, params):
        self.logs.append(params.level)

    async def listen(self, asked):
        """Opens a subscription; a task reads it to its end, and its result says how that was."""
        acknowledged = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()

        async def read():
            arguments = {
                "tools_list_changed": asked.get("toolsListChanged", False),
                "prompts_list_changed": asked.get("promptsListChanged", False),
                "resources_list_changed": asked.get("resourcesListChanged", False),
                "resource_subscriptions": asked.get("resourceSubscriptions", []),
            }
            try:
                async with self.client.listen(**arguments) as subscription:
                    acknowledged.set_result(subscription.honored.model_dump(by_alias=True, exclude_none=True))
                    hearing = asyncio.create_task(self.hear(subscription))
                    stopping = asyncio.create_task(stop.wait())
                    done, _ = await asyncio.wait({hearing, stopping}, return_when=asyncio.FIRST_COMPLETED)
                    for task in {hearing, stopping} - done:
                        task.cancel()
                    return hearing.result() if hearing in done else "local"
            except Exception as error:  # whatever it is, it is for the one who waits for the acknowledgement
                if acknowledged.done():
                    return f"{type(error).__name__}: {error}"
                acknowledged.set_exception(error)
                return "never begun"

        task = asyncio.create_task(read())
        honored = await acknowledged
        self.open[task] = stop
        return honored, task

    async def hear(self, subscription):
        try:
            async for event in subscription:
                change = f"updated {event.uri}" if isinstance(event, ResourceUpdated) else NAMES[type(event)]
                if change in UNASKED:
                    continue
                async with self.condition:
                    self.heard.append(change)
                    self.condition.notify_all()
            return "graceful"
        except SubscriptionLost:
            return "remote"

    async def hears(self, count, timeout):
        """Waits until that many changes were heard, or the time is over: the comparison says what is missing."""
        async def wait():
            async with self.condition:
                await self.condition.wait_for(lambda: len(self.heard) >= count)

        try:
            await asyncio.wait_for(wait(), timeout)
        except asyncio.TimeoutError:
            pass

    async def close(self):
        for stop in self.open.values():
            stop.set()
        await asyncio.gather(*self.open)
        self.open.clear()


def everything(honored):
    lists = [name for name in ["tools", "prompts", "resources"] if honored.get(f"{name}ListChanged")]
    return lists + [f"updated {uri}" for uri in honored.get("resourceSubscriptions", [])]


listeners = {}
# What each listener must have heard so far.
expected = {"one": [], "two": [], "deaf": [], "other": []}


async def start(stack):
    for name, token in [("one", "token-listen"), ("two", "token-listen"), ("deaf", "token-listen"), ("other", "token-other")]:
        listeners[name] = await Listener.connect(stack, name, token)
    honored, _ = await listeners["one"].listen(CHANGES["asked"])
    same("the acknowledgement names what the server can tell", honored, CHANGES["honored"])
    await listen_again()


async def listen_again():
    await listeners["two"].listen(CHANGES["honored"])
    await listeners["deaf"].listen({"promptsListChanged": True})
    await listeners["other"].listen(CHANGES["asked"])


async def make_changes(round):
    """Makes each change once and lets all who must hear it hear it."""
    client = listeners["one"].client
    for change in CHANGES["steps"]:
        for name in ["one", "two", "other"] if change.get("everyone") else SHARED:
            expected[name].extend(change["tells"])
        result = await client.call_tool(change["name"], change["arguments"])
        check(f"{round}: {change['name']} does its work", not result.is_error, result)
        await asyncio.gather(*(listener.hears(len(expected[name]), HEAR_S) for name, listener in listeners.items()))
        for list_name, names in change.get("lists", {}).items():
            listed = (await client.list_tools()).tools if list_name == "tools" else (await client.list_resources()).resources
            for name in names:
                check(f"{round}: the SDK has {name} in its new list", name in [item.name for item in listed])
        for call in change.get("undo", []):
            await client.call_tool(call["name"], call["arguments"])
    await asyncio.sleep(QUIET_S)
    for name, title in [
        ("one", "a listener hears each change once"),
        ("two", "so does the second listener of the same user" if "two" in SHARED else "a second listener hears what is for everyone"),
        ("deaf", "who asked for something else hears nothing"),
        ("other", "another user hears what concerns its session"),
    ]:
        same(f"{round}: {title}", listeners[name].heard, expected[name])


async def calls_meanwhile():
    client, logs = listeners["one"].client, listeners["one"].logs
    seen = []

    async def note(amount, total, message):
        seen.append(amount)

    progress = TARGET["progress"]
    await client.call_tool(progress["name"], progress["arguments"], progress_callback=note)
    same("progress arrives while listening", seen, progress["steps"])
    if "logs" not in CHANGES:
        return
    wanted, call = CHANGES["logs"], CHANGES["logs"]["call"]
    await client.call_tool(call["name"], call["arguments"])
    same("a call that names no level gets no logs", logs, [])
    begun = asyncio.Event()

    async def begin(amount, total, message):
        begun.set()

    during = wanted.get("during")
    options = {"progress_callback": begin} if during else {}
    logged = asyncio.create_task(client.call_tool(call["name"], call["arguments"], meta={LOG_LEVEL: wanted["level"]}, **options))
    if during:
        await asyncio.wait_for(begun.wait(), HEAR_S)
        await client.call_tool(during["name"], during["arguments"])
    await logged
    if "levels" in wanted:
        same(f"a call that names {wanted['level']} gets its logs from there on", logs, wanted["levels"])
    if "count" in wanted:
        same("logs outside of the call's stream reach the one call that wants them", len(logs), wanted["count"])
    if during:
        await client.call_tool(during["name"], during["arguments"])


async def break_streams():
    """Streams break without the server noticing, and a change is told to nobody. A legacy server may refuse another
    stream for a while; once it stands, who listens has heard of the change, or has been told to look again."""
    if "unheard" not in CHANGES:
        return
    same("there was a stream for each session with listeners", (await ask_runner("break-streams"))["broken"], 2)
    unheard, client = CHANGES["unheard"], listeners["one"].client
    await client.call_tool(unheard["call"]["name"], unheard["call"]["arguments"])
    seen = await ask_runner("streams-again")
    again = seen["sessions"] == 2 and (not unheard["refuses"] or seen["refusals"] > 0)
    refused = ", though the server refused them at first" if unheard["refuses"] else ""
    check(f"streams that broke are there again{refused}", again, seen)
    await asyncio.sleep(QUIET_S)
    for name, listener in listeners.items():
        news = listener.heard[len(expected[name]):]
        if name in ["one", "two"]:
            check(f"{name} does not miss what was told on a broken stream", set(unheard["tells"]) <= set(news), news)
        same(f"{name} is told nothing twice after a broken stream", sorted(news), sorted(set(news)))
        expected[name] = list(listener.heard)
    for call in unheard.get("undo", []):
        await client.call_tool(call["name"], call["arguments"])


async def restart():
    """After a restart, who listens to a legacy server is told to look again; a modern server's subscription ends."""
    await ask_runner("restart")
    if CHANGES.get("restart") == "ends":
        tasks = [task for listener in listeners.values() for task in listener.open]
        same("a subscription ends with its server, and not as if on purpose", set(await asyncio.gather(*tasks)), {"remote"})
        for listener in listeners.values():
            listener.open.clear()
        await listeners["one"].listen(CHANGES["asked"])
        await listen_again()
        return
    everything_again = [change for change in everything(CHANGES["honored"]) if change not in UNASKED]
    again = {name: everything_again for name in ["one", "two", "other"]} | {"deaf": ["prompts"] if CHANGES["prompts"] else []}
    await asyncio.gather(*(listener.hears(len(expected[name]) + len(again[name]), HEAR_AGAIN_S) for name, listener in listeners.items()))
    await asyncio.sleep(QUIET_S)
    for name, listener in listeners.items():
        before = len(expected[name])
        same(f"after a restart {name} is told once to look again at all", sorted(listener.heard[before:]), sorted(again[name]))
        expected[name] = list(listener.heard)


async def end():
    await asyncio.gather(*(listener.close() for listener in listeners.values()))
    seen = await ask_runner("nothing-left-open")
    check("nothing is left open at the server after the last listener", seen["right"], seen.get("detail", ""))


async def together():
    """Several subscriptions on the one channel of a program, each with its own end."""
    client, change, told = listeners["one"].client, CHANGES["steps"][0], []

    async def next_of(subscription):
        try:
            event = await asyncio.wait_for(anext(aiter(subscription)), QUIET_S)
        except asyncio.TimeoutError:
            return None
        return f"updated {event.uri}" if isinstance(event, ResourceUpdated) else NAMES[type(event)]

    async with client.listen(prompts_list_changed=True) as some:
        async with client.listen(tools_list_changed=True, resources_list_changed=True) as every:
            await client.call_tool(change["name"], change["arguments"])
            told = [await next_of(every), await next_of(some)]
        same("of two subscriptions on one channel, one is told", told, [*change["tells"], None])
        await client.call_tool(change["name"], change["arguments"])
        same("the other hears nothing after the end of the first", await next_of(some), None)
    for call in change.get("undo", []):
        await client.call_tool(call["name"], call["arguments"])


async def drain():
    if WAYS["front"] == "stdio":
        return
    _, ended = await listeners["one"].listen(CHANGES["asked"])
    seen = await ask_runner("drain")
    check("the proxy drains", seen["right"], seen.get("detail", ""))
    done, _ = await asyncio.wait({ended}, timeout=HEAR_S)
    same("a drain ends a subscription gracefully", ended.result() if done else "not at all", "graceful")


async def main():
    async with AsyncExitStack() as stack:
        steps = {
            "start": lambda: start(stack),
            "changes": lambda: make_changes("at first"),
            "calls": calls_meanwhile,
            "broken streams": break_streams,
            "restart": restart,
            "changes after the restart": lambda: make_changes("after a restart"),
            "end": end,
            "several at once": together,
            "drain": drain,
        }
        for name in [] if WAYS["proxied"] else ["restart", "changes after the restart"]:
            del steps[name]
        if WAYS["front"] != "stdio":
            del steps["several at once"]
        for name, step in steps.items():
            try:
                await step()
            except Exception as error:  # whatever a step throws is a failed check of its name
                check(name, False, f"{type(error).__name__}: {error}")
    if WAYS["front"] == "stdio":
        same("nothing that was started is left", (await ask_runner("all-gone"))["left"], [])


asyncio.run(main())
