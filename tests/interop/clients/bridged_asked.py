# Owns: the checks that the official Python client 1.x makes of what a modern server asks it through the proxy: the same as
# the TypeScript client's (bridged-asked.mjs), as far as this SDK can do it; it answers one question after the other.
# Does not own: starting anything, or what is asked and answered (scenarios/bridged-target.mjs).

import asyncio
import json

from bridged import BRIDGED, TARGET, User, ask_runner, check, code_of, in_order, same, step, text_of

CALLS_AT_ONCE = 3
# A retry that must not come, and what is told at the end of a call, would be there by then.
QUIET_SECONDS = 0.3


def method_of(one):
    return "tools/call" if "tool" in one else "prompts/get" if "prompt" in one else "resources/read"


async def one_case(user, one):
    what, since, heard = one["what"], len(user.asked), len(user.told)
    user.answer_to = lambda message: one["answers"][message]
    steps = []

    async def note(amount, *_):
        steps.append(amount)

    await ask_runner("mark")
    result = await user.call(one, **({"progress_callback": note} if "progress" in one else {}))
    right = json.loads(text_of(result)) == one["saysJson"] if "saysJson" in one else text_of(result) == one["says"]
    check(f"{what}: the result", right and not getattr(result, "isError", False), result)
    if "progress" in one and BRIDGED:
        same(f"{what}: the progress", steps, one["progress"])
    seen = user.asked[since:]
    known = [{key: value for key, value in question.items() if key != "elicitationId"} for question in seen]
    same(f"{what}: what the client was asked", in_order(known), in_order(question for round in one["asked"] for question in round))
    if not BRIDGED:
        return
    legs = await ask_runner("legs", method=method_of(one))
    same(f"{what}: how often the server got it", legs["times"], one.get("legs", len(one["asked"]) + 1))
    if "legs" not in one:
        same(f"{what}: the rounds", legs["rounds"], [sorted(question["kind"] for question in round) for round in one["asked"]])
    pages = [question["elicitationId"] for question in seen if question["kind"] == "url"]
    check(f"{what}: each page has an id of its own", all(len(page) >= 16 for page in pages) and len(set(pages)) == len(pages), pages)
    if "completed" in one:
        await asyncio.sleep(QUIET_SECONDS)
        same(f"{what}: the client hears that it is over", user.told[heard:], [f"completed {page}" for page in pages])


async def refusals(user):
    """An error is no answer that a modern server could be given, so the call ends with it."""
    await ask_runner("mark")
    user.refuses = "the user does not want that"
    refused = await user.tool("ask_model")
    check("a model that is refused: the tool fails", refused.isError, refused)
    same("a prompt whose question is refused is an error", await code_of(user.client.get_prompt("introduction")), -32603)
    user.refuses = None
    for method in ("tools/call", "prompts/get"):
        same(f"a refused question of {method} is not asked again", (await ask_runner("legs", method=method))["times"], 1)


async def two_users():
    """Two users, each with several calls at once: everyone is asked what their own calls ask, with their own token."""
    names, numbers = ["alice", "bob"], range(1, CALLS_AT_ONCE + 1)
    users = [await User(name).open() for name in names]
    for user in users:
        user.answer_to = lambda _, name=user.token: {"action": "accept", "content": {"name": name}}
    every = [(user, number) for user in users for number in numbers]
    results = await asyncio.gather(*(user.tool("ask_user", user=user.token, call=number) for user, number in every))
    same("two users: each call got its own answer", [text_of(result) for result in results], [f"Hello, {user.token}" for user, _ in every])
    for user in users:
        wanted = [f"{user.token}, what is your name? ({number})" for number in numbers]
        same(f"two users: what {user.token} was asked", sorted(question["message"] for question in user.asked), wanted)
    lines = [f"ended ask_user {user.token} {number} accept" for user, number in every]
    same("two users: each call ended once", (await ask_runner("said", lines=lines))["times"], [1] * len(lines))
    if BRIDGED:
        own = await ask_runner("own-token", users=names)
        check("two users: the server got each call with its own token", own["right"], own.get("detail", ""))
    for user in reversed(users):
        await user.close()


async def undeclared():
    """A kind that the client has not declared is not asked; the call fails in words."""
    user = await User("silent", silent=True).open()
    refused = await user.tool("ask_name")
    check("a question of a kind that was not declared: the tool fails", refused.isError, refused)
    await user.close()


async def main():
    user = await User("asked").open()
    for one in TARGET["cases"]:
        if BRIDGED or not one.get("bridgedOnly", False):
            await step(one["what"], one_case(user, one))
    await step("two users", two_users())
    await step("a kind that was not declared", undeclared())
    if BRIDGED:
        await step("refusals", refusals(user))
    user.answer_to = lambda _: {"action": "accept", "content": {"name": "Ada"}}
    same("the session is alive after all that", text_of(await user.tool("ask_name")), "Hello, Ada")
    await user.close()


asyncio.run(main())
