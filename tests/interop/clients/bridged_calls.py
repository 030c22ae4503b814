# Owns: the checks that the official Python client 1.x makes of what can be called of a modern server through the proxy: the
# same as the TypeScript client's (bridged-calls.mjs), but for what only a client by hand can do.
# Does not own: starting anything, the questions (bridged_asked.py), what comes outside of calls (bridged_streams.py).

import asyncio
import json

import httpx
from mcp.types import (
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    PromptReference,
)

from bridged import ALL, BRIDGED, HAS_SESSIONS, LATEST, SERVER_OVER_HTTP, TARGET, URL, WAY, User, ask_runner, check, code_of, same, step, text_of

AT_ONCE = 20
# Nothing that is told of a call comes later than this after its answer.
QUIET_SECONDS = 0.2


def beginning(user):
    begun = user.begun
    same("the server says its name", (begun.serverInfo.name, begun.serverInfo.version), (TARGET["serverName"], "1.0.0"))
    can = begun.capabilities.model_dump(exclude_none=True)
    same("the server says what it can do", can, TARGET["capabilities"])
    same("the instructions arrive", begun.instructions, TARGET["instructions"])
    same("the revision is the newest that the client knows", begun.protocolVersion, LATEST)
    if HAS_SESSIONS:
        check("there is a session", user.session_id() is not None)


async def tools(user):
    listed = {tool.name: tool for tool in (await user.client.list_tools()).tools}
    for name, schema in TARGET["outputs"].items():
        found = listed[name].outputSchema
        same(f"the output schema of {name}", found and {key: value for key, value in found.items() if key != "$schema"}, schema)
    # The SDK checks each result against the schema that was listed.
    for one in TARGET["structured"]:
        result = await user.tool(one["name"], **one["arguments"])
        check(f"structured output of {one['name']}", result.structuredContent == one["value"] and not result.isError, result)
        same(f"the text of {one['name']} says the same", json.loads(text_of(result)), one["text"])
    same("contents of all kinds", [block.type for block in (await user.tool("gallery")).content], TARGET["gallery"])
    same("a long text arrives whole", len(text_of(await user.tool("bulk", length=TARGET["bulk"]))), TARGET["bulk"])
    messages = [f"m{index}" for index in range(AT_ONCE)]
    answers = await asyncio.gather(*(user.tool("echo", message=message) for message in messages))
    same("calls at once each get their own", [text_of(answer) for answer in answers], [f"Echo: {message}" for message in messages])


async def headers(user, when):
    for one in TARGET["headers"]:
        result = await user.tool("locate", **one["arguments"])
        check(f"the server gets the arguments{when}", not result.isError and json.loads(text_of(result)) == one["arguments"], result)
        if not BRIDGED or not SERVER_OVER_HTTP:
            continue
        seen = (await ask_runner("headers-of", tool="locate"))["headers"]
        same(f"the arguments are mirrored in headers{when}", seen, one["headers"])


async def cold():
    user = await User("cold").open()
    await headers(user, ", of a tool that was never listed")
    await user.close()


async def resources(user):
    listed = [str(resource.uri) for resource in (await user.client.list_resources()).resources]
    check("the resource is listed", "fixture://greeting" in listed, listed)
    templates = [template.uriTemplate for template in (await user.client.list_resource_templates()).resourceTemplates]
    for template in TARGET["templates"]:
        check(f"the template {template} is listed", template in templates, templates)
    for read in TARGET["reads"]:
        same(f"{read['uri']} has its text", text_of(await user.client.read_resource(read["uri"])), read["text"])


async def prompts(user):
    wanted = TARGET["prompt"]
    listed = [prompt.name for prompt in (await user.client.list_prompts()).prompts]
    check("the prompt is listed", wanted["name"] in listed, listed)
    same("the prompt has its text", text_of(await user.client.get_prompt(wanted["name"], wanted["arguments"])), wanted["text"])
    asked = TARGET["completion"]
    result = await user.client.complete(PromptReference(**asked["ref"]), asked["argument"])
    same("completion gives the values", result.completion.values, asked["values"])


async def progress(user):
    seen = []

    async def note(amount, total, message):
        seen.append(f"{amount:g}/{total:g} {message}")

    await user.client.call_tool("count", {"steps": 5, "pause": 10}, progress_callback=note)
    same("progress arrives in order", seen, [f"{number}/5 step {number}" for number in range(1, 6)])


async def logging(user):
    async def lines():
        since = len(user.told)
        await user.tool("chat")
        await asyncio.sleep(QUIET_SECONDS)
        return user.told[since:]

    if BRIDGED:
        same("nothing is logged before a level is set", await lines(), [])
    await user.client.set_logging_level("info")
    same("log lines from the level on", await lines(), ["info: a line of info", "warning: a line of warning"])
    await user.client.set_logging_level("warning")
    same("log lines from another level on", await lines(), ["warning: a line of warning"])
    if not BRIDGED:
        return
    declared = await ask_runner("declared-to", tool="chat")
    same("the server is told the level", declared["level"], "warning")
    same("the server is told who asks", declared["client"], "interop-python-bridged")
    same("the server is told what the client can be asked", declared["capabilities"], ALL)


async def errors(user):
    session = user.session_id()
    failed = await user.tool("fail")
    check("a failing tool says so", failed.isError, failed)
    unknown = await code_of(user.tool("no-such-tool"))
    check("an unknown tool is an error", unknown == -32602 or getattr(unknown, "isError", False), unknown)
    # A server that is asked directly keeps the code of its own revision.
    missing = TARGET["missing"]["code"] if BRIDGED else -32602
    same("a missing resource has the code of its revision", await code_of(user.client.read_resource(TARGET["missing"]["uri"])), missing)
    code = await code_of(user.client.get_prompt("no-such-prompt"))
    check("an unknown prompt is an error", code in (-32602, -32603), code)
    await user.client.send_ping()
    same("the session outlives errors", (user.session_id(), text_of(await user.tool("echo", message="still there"))), (session, "Echo: still there"))


async def cancellation(user):
    """This SDK leaves it to its user to say that a call is cancelled."""
    started = asyncio.Event()

    async def note(*_):
        started.set()

    number = user.client._request_id
    slow = asyncio.create_task(user.client.call_tool("wait", {"seconds": 60}, progress_callback=note))
    await started.wait()
    slow.cancel()
    params = CancelledNotificationParams(requestId=number, reason="enough")
    await user.client.send_notification(ClientNotification(CancelledNotification(params=params)))
    if not BRIDGED:
        return
    seen = await ask_runner("cancelled-upstream", tool="wait", line="wait was cancelled")
    check("the server sees the call end", seen["right"], seen.get("detail", ""))
    same("a call after it is answered", text_of(await user.tool("echo", message="after")), "Echo: after")


async def ends():
    user = await User("gone").open()
    session = user.session_id()
    other = await User("gone").open(session=session)
    same("two clients can share a session", text_of(await other.tool("echo", message="shared")), "Echo: shared")
    await other.close()
    headers = {"Authorization": "Bearer token-gone", "Mcp-Session-Id": session, "MCP-Protocol-Version": LATEST}
    async with httpx.AsyncClient() as http:
        deleted = await http.delete(URL, headers=headers)
    check("the session can be ended", deleted.is_success, str(deleted.status_code))
    if BRIDGED:
        gone = await code_of(user.tool("echo", message="gone"))
        check("an ended session is not found", isinstance(gone, int), gone)
    await user.close()
    again = await User("gone").open()
    check("a client can begin again", again.session_id() != session)
    same("and is served", text_of(await again.tool("echo", message="again")), "Echo: again")
    await again.close()


async def main():
    user = await User().open()
    beginning(user)
    await step("headers without a list", cold())
    await step("tools", tools(user))
    await step("headers", headers(user, ""))
    await step("resources", resources(user))
    await step("prompts", prompts(user))
    await step("progress", progress(user))
    await step("logging", logging(user))
    await step("errors", errors(user))
    await step("cancellation", cancellation(user))
    if HAS_SESSIONS:
        await step("the end of a session", ends())
    await user.close()
    if WAY == "stdio":
        same("nothing that was started is left", (await ask_runner("all-gone"))["left"], [])


asyncio.run(main())
