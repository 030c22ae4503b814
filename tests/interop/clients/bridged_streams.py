# Owns: the checks that the official Python client 1.x makes of what comes outside of calls through the proxy, and of streams
# that break: the same as the TypeScript client's (bridged-streams.mjs), but for what only a client by hand can do.
# Does not own: starting anything, or what is right to say in a call (bridged_calls.py, bridged_asked.py).

import asyncio

from mcp.shared.message import ClientMessageMetadata
from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest
from pydantic import AnyUrl

from bridged import HAS_SESSIONS, WAY, User, ask_runner, check, same, step, text_of

GREETING, LATE = "fixture://greeting", "fixture://late"
LISTS = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"]
# What must not be told would be there by then.
QUIET_SECONDS = 0.15
COUNT = {"steps": 8, "pause": 60}


async def tells(what, user, change, expected):
    """Whether the user is told just that of the change."""
    since = len(user.told)
    await change
    for one in set(expected):
        await user.hears(one, since)
    await asyncio.sleep(QUIET_SECONDS)
    same(what, user.told[since:], expected)


async def lists(user):
    seen = await ask_runner("listening", token="token-streams", wanted=LISTS)
    check("the proxy listens for changes once the session has begun", seen["right"], seen.get("detail", ""))

    async def names():
        return [tool.name for tool in (await user.client.list_tools()).tools]

    await tells("a tool is added", user, user.tool("add_tool", name="late"), ["tools"])
    check("it is in the list", "late" in await names())
    await tells("it is removed, and that is told after the call", user, user.tool("remove_tool", name="late"), ["tools"])
    check("it is not in the list any more", "late" not in await names())
    await tells("the prompts change", user, user.tool("change_prompts", name="any"), ["prompts"])
    await tells("a resource is added", user, user.tool("add_resource", uri=LATE), ["resources"])
    same("and can be read", text_of(await user.client.read_resource(LATE)), "new")


async def subscriptions(user):
    await tells("nothing is told without a subscription", user, user.tool("touch", uri=GREETING), [])
    await user.client.subscribe_resource(AnyUrl(GREETING))
    await tells("a resource that was subscribed to", user, user.tool("touch", uri=GREETING), [f"updated {GREETING}"])
    await tells("a resource that was not", user, user.tool("touch", uri=LATE), [])
    await user.client.subscribe_resource(AnyUrl(LATE))
    await tells("a second subscription", user, user.tool("touch", uri=LATE), [f"updated {LATE}"])
    await tells("the first one still stands", user, user.tool("touch", uri=GREETING), [f"updated {GREETING}"])
    await user.client.unsubscribe_resource(AnyUrl(LATE))
    await tells("nothing is told after its end", user, user.tool("touch", uri=LATE), [])


async def broken_stream(user):
    since = len(user.told)
    check("the streams of sessions break", (await ask_runner("break-streams-of", side="front", verb="GET"))["broken"] > 0)
    await asyncio.sleep(QUIET_SECONDS)
    other = await User("streams").open()
    await other.tool("touch", uri=GREETING)
    check("a change in the meantime is told on the next stream", await user.hears(f"updated {GREETING}", since))
    await other.close()


async def broken_listen(user):
    """The proxy's own subscription breaks: what may have been missed is told."""
    since = len(user.told)
    check("the streams of the server break", (await ask_runner("break-streams-of", side="upstream", verb="POST"))["broken"] > 0)
    for what in ["tools", "prompts", "resources", f"updated {GREETING}"]:
        check(f"it is told what may have changed: {what}", await user.hears(what, since))
    await tells("and changes are told as before", user, user.tool("touch", uri=GREETING), [f"updated {GREETING}"])


async def resumed(user):
    """The SDK comes back by itself for a call whose stream broke."""
    seen, half = [], asyncio.Event()

    async def note(amount, *_):
        seen.append(amount)
        if amount == 3:
            half.set()

    counted = asyncio.create_task(user.client.call_tool("count", COUNT, progress_callback=note))
    await half.wait()
    check("the stream of a call breaks", (await ask_runner("break-streams-of", side="front", verb="POST"))["broken"] > 0)
    check("the server does not hear of it", (await ask_runner("runs-upstream", tool="count"))["right"])
    same("a broken call has its answer after all", text_of(await counted), f"counted {COUNT['steps']}")
    same("and all of its progress, once", seen, list(range(1, COUNT["steps"] + 1)))


async def handed_over():
    """Another client takes a call up where the first one left it, with the SDK's resumption token."""
    tokens = []

    async def note(token):
        tokens.append(token)

    def count(user, **metadata):
        params = CallToolRequestParams(name="count", arguments=COUNT, _meta={"progressToken": "mine"})
        request = ClientRequest(CallToolRequest(params=params))
        return user.client.send_request(request, CallToolResult, metadata=ClientMessageMetadata(**metadata))

    first = await User("handed").open(end=False)
    lost = asyncio.create_task(count(first, on_resumption_token_update=note))
    while len(tokens) < 3 and not lost.done():
        await asyncio.sleep(0.01)
    session = first.session_id()
    lost.cancel()
    await first.close()
    second = await User("handed").open(session=session)
    result = await count(second, resumption_token=tokens[-1])
    same("a call is taken up by its token in another client", text_of(result), f"counted {COUNT['steps']}")
    await second.close()


async def restarts():
    """With a client of its own, since this SDK gives its stream up for good when it breaks for the second time."""
    user = await User("restarts").open()
    await user.client.subscribe_resource(AnyUrl(GREETING))
    session, since = user.session_id(), len(user.told)
    await ask_runner("restart")
    same("a call after the restart of the server is answered", text_of(await user.tool("echo", message="again")), "Echo: again")
    for what in ["tools", f"updated {GREETING}"]:
        check(f"after the restart of the server, it is told what may have changed: {what}", await user.hears(what, since))
    if not HAS_SESSIONS:
        await user.close()
        return
    await ask_runner("mark")
    left = (await ask_runner("restart-proxy"))["left"]
    same("nothing that the killed proxy had started is left", left, [])
    same("a call after the restart of the proxy is answered", text_of(await user.tool("echo", message="still")), "Echo: still")
    same("in the same session", user.session_id(), session)
    opened = await ask_runner("opened-again", session=session)
    check("after the restart of the proxy, the SDK has its stream again", opened["right"])
    listens = await ask_runner("listening", token="token-restarts", wanted=["toolsListChanged"])
    check("after the restart of the proxy, the server is listened to", listens["right"], listens.get("detail", ""))
    await asyncio.sleep(QUIET_SECONDS)
    again = len(user.told)
    await user.tool("add_tool", name="last")
    check("after the restart of the proxy, changes are told", await user.hears("tools", again))
    await user.close()


async def main():
    await ask_runner("mark")
    user = await User("streams").open()
    await step("lists", lists(user))
    await step("subscriptions", subscriptions(user))
    if HAS_SESSIONS:
        await step("a stream of a session that breaks", broken_stream(user))
    await step("the proxy's own stream breaks", broken_listen(user))
    if HAS_SESSIONS:
        await step("a call that is taken up again", resumed(user))
        await step("a call that another client takes up", handed_over())
    await step("restarts", restarts())
    if HAS_SESSIONS:
        often = await ask_runner("resumptions", most=2)
        check("no client asks for a stream again and again", often["right"], often.get("detail", ""))
    await user.close()
    seen = await ask_runner("ended", token="token-streams", marker={"tool": "add_tool", "name": "last"})
    check("with the session, its subscriptions at the server end", seen["right"], seen.get("detail", ""))
    if WAY == "stdio":
        same("nothing that was started is left", (await ask_runner("all-gone"))["left"], [])


asyncio.run(main())
