// Owns: the checks that the official TypeScript client 2.x, pinned to 2026-07-28, makes while it answers, by the SDK's own
// means, what a server asks through the proxy at argv[2]. argv[3] is a proxy that waits for an answer only shortly,
// or `-` where there is no proxy; argv[4] describes the questions (scenarios/asked.mjs). Without a proxy the client has the era of
// the server.
// Does not own: how anything is reached (reach-modern.mjs).

import { Client } from '@modelcontextprotocol/client';

import { askRunner, check, same, sameProgress, step } from './checks.mjs';
import { reach } from './reach-modern.mjs';

const [url, hastyUrl, askedText] = process.argv.slice(2);
const asks = JSON.parse(askedText);
const modern = hastyUrl !== '-' || asks.modern;

const CALL_MS = 10_000;
/** A legacy client opens its stream in the background, and what the server asks on it before that is lost. */
const STREAM_MS = 1000;
const CALLS_AT_ONCE = 3;

const NAME = { name: 'interop-typescript-asked', version: '1.0.0' };
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
const SAMPLED = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' };
const ROOTS = { roots: [{ uri: 'file:///ada', name: 'ada' }] };

/** A client that writes down what it is `asked`, and answers for the user by `answerTo`: message -> answer. */
async function connect(to, token, capabilities = ALL) {
  const client = new Client(NAME, { capabilities, versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' } });
  const user = { client, asked: [], kinds: new Set(), answerTo: async () => undefined };
  const note = (question) => {
    user.asked.push(question);
    user.kinds.add(question.kind);
  };
  const handlers = {
    elicitation: ['elicitation/create', ({ message, mode, url: page }) => {
      note(mode === 'url' ? { kind: 'url', message, url: page } : { kind: 'form', message });
      return user.answerTo(message);
    }],
    sampling: ['sampling/createMessage', ({ messages }) => {
      note({ kind: 'sampling', message: textsOf(messages.map(({ content }) => content)) });
      return SAMPLED;
    }],
    roots: ['roots/list', () => {
      note({ kind: 'roots' });
      return ROOTS;
    }],
  };
  for (const [capability, [method, answer]] of Object.entries(handlers)) {
    if (capabilities[capability]) client.setRequestHandler(method, async ({ params }) => answer(params ?? {}));
  }
  await client.connect(reach(to, token));
  if (!modern) await new Promise((resolve) => setTimeout(resolve, STREAM_MS));
  return user;
}

const textsOf = (blocks) => blocks.flat().map((block) => block.text ?? '').join('\n');
const textOf = (result) => textsOf(result.content ?? result.contents ?? result.messages.map(({ content }) => content));
const inOrder = (questions) => questions.map((question) => JSON.stringify(question)).sort();

function methodOf({ tool, prompt }) {
  return tool !== undefined ? 'tools/call' : prompt !== undefined ? 'prompts/get' : 'resources/read';
}

function call({ client }, { tool, prompt, resource, arguments: args = {} }, options) {
  if (tool !== undefined) return client.callTool({ name: tool, arguments: args }, options);
  if (prompt !== undefined) return client.getPrompt({ name: prompt, arguments: args }, options);
  return client.readResource({ uri: resource }, options);
}

async function oneCase(user, one) {
  user.asked.length = 0;
  user.answerTo = async (message) => {
    if (one.answerAfterMs !== undefined) await new Promise((resolve) => setTimeout(resolve, one.answerAfterMs));
    return one.answers?.[message];
  };
  const steps = [];
  // What the SDK itself reports of its rounds has a message; the server's progress has none.
  const onprogress = ({ progress, message }) => message === undefined && steps.push(progress);
  await askRunner('mark');
  const result = await call(user, one, { timeout: CALL_MS, ...(one.progress && { onprogress }) });
  const text = textOf(result);
  check(`${one.what}: the result`, (one.says ?? []).every((part) => text.includes(part)) && (result.isError ?? false) === (one.isError ?? false), result);
  if (one.progress) await sameProgress(`${one.what}: the progress`, steps, one.progress, { tool: one.tool, legs: true, piped: url.startsWith('{') });
  const seen = await askRunner('since-mark', { method: methodOf(one) });
  same(`${one.what}: how often the server ran it`, seen.runs, one.runs ?? 1);
  if (one.asked === undefined) return;
  const ofItsOwn = ({ kind }) => asks.rootsOnItsOwn && kind === 'roots';
  same(`${one.what}: what the client was asked`, inOrder(user.asked.filter((question) => !ofItsOwn(question))), inOrder(one.asked.flat()));
  if (!modern) return;
  const rounds = seen.rounds.map((kinds) => kinds.filter((kind) => !ofItsOwn({ kind }))).filter((kinds) => kinds.length > 0);
  same(`${one.what}: the rounds`, rounds, one.asked.map((round) => round.map(({ kind }) => kind).sort()));
}

/** Two users, each with several calls at once: everyone is asked what their own calls ask, and nothing runs twice. */
async function twoUsers() {
  const { tool, named, message } = asks.users;
  const names = ['alice', 'bob'];
  const numbers = Array.from({ length: CALLS_AT_ONCE }, (_, index) => index + 1);
  const users = await Promise.all(names.map(async (name) => Object.assign(await connect(url, `token-${name}`), { name })));
  for (const user of users) user.answerTo = async () => ({ action: 'accept', content: { name: user.name } });
  const all = users.flatMap((user) => numbers.map((number) => ({ user, number })));
  await askRunner('mark');
  const results = await Promise.all(
    all.map(({ user, number }) => call(user, { tool, arguments: named ? { user: user.name, call: number } : {} }, { timeout: CALL_MS })),
  );
  const wrong = all.filter(({ user }, index) => !textOf(results[index]).includes(user.name));
  same('two users, several calls at once: each got the answer of its own user', wrong.map(({ user, number }) => `${user.name} ${number}`), []);
  for (const { name, asked } of users) {
    const expected = numbers.map((number) => ({ kind: 'form', message: named ? `${name}, what is your name? (${number})` : message }));
    const forms = asked.filter(({ kind }) => kind === 'form');
    same(`two users: ${name} was asked what ${name}'s calls ask`, inOrder(forms), inOrder(expected));
  }
  const seen = await askRunner('since-mark', { method: 'tools/call' });
  same('two users: how often the server ran the calls', seen.runs, all.length * (asks.modern ? 2 : 1));
  if (asks.sessions) {
    const sessions = await askRunner('one-user-per-session');
    check('no upstream session served two users', sessions.right, sessions.detail);
  }
  if (named) {
    // A modern server begins anew with each answer.
    const words = asks.modern ? ['ended'] : ['began', 'ended'];
    const lines = all.flatMap(({ user, number }) => words.map((word) => `${word} ${tool} ${user.name} ${number}${word === 'ended' ? ' accept' : ''}`));
    same('two users: the server says of each call once that it began and once that it ended', (await askRunner('said', { lines })).times, lines.map(() => 1));
  }
  if (named && modern) {
    const own = await askRunner('own-questions', { tool });
    check('two users: each question came in the answer to the call that asked it', own.right, own.detail);
  }
  await Promise.all(users.map(({ client }) => client.close()));
}

/** A client that does not come back: the server hears of it, and what comes later is refused. */
async function abandoned() {
  const { tool, arguments: args, line } = asks.abandoned;
  const { client } = await connect(hastyUrl, 'token-carol');
  const first = await client.callTool({ name: tool, arguments: args }, { allowInputRequired: true, timeout: CALL_MS });
  same('a client that never comes back: it was asked', first.resultType, 'input_required');
  const seen = await askRunner('given-up', { tool, ...(line && { line }) });
  check('a client that never comes back: the server sees a cancel', seen.right, seen.detail);
  const answers = Object.keys(first.inputRequests).map((key) => [key, { action: 'accept', content: { name: 'Carol' } }]);
  const late = { name: tool, arguments: args, inputResponses: Object.fromEntries(answers), requestState: first.requestState };
  const refused = await client.callTool(late, { timeout: CALL_MS }).then(() => 'a result', ({ code }) => code);
  same('an answer that comes too late is refused', refused, -32602);
  await client.close();
}

/** A question of a kind that the client has not declared is no question for it: the call is refused, or fails where nothing says whose it is. */
async function undeclared() {
  const { client } = await connect(url, 'token-main', { sampling: {} });
  const refused = await call({ client }, asks.undeclared, { timeout: CALL_MS }).then(
    ({ isError }) => ({ isError }),
    ({ code, data }) => ({ code, kinds: Object.keys(data?.requiredCapabilities ?? {}) }),
  );
  same('a question of a kind that was not declared', refused, asks.undeclared.isError ? { isError: true } : { code: -32021, kinds: ['elicitation'] });
  await client.close();
}

const main = await connect(url, 'token-main').catch((error) => {
  check('connects', false, `${error?.name}: ${error?.message}`);
  process.exit(1);
});
for (const one of asks.cases) {
  if (modern || !one.modern) await step(one.what, () => oneCase(main, one));
}
for (const { method, verb } of asks.askedOn) {
  const seen = await askRunner('asked-on', { method, verb });
  check(`${method} was asked on a stream of ${verb}`, seen.right, seen.detail);
}
if (asks.resumed) same('how many closed streams were taken up again', (await askRunner('resumed')).times, asks.resumed);
if (asks.users) await step('two users', twoUsers);
if (asks.rootsOnItsOwn) check('the client was asked for its roots at some time', main.kinds.has('roots'));
if (modern) {
  if (asks.awaited) {
    await step(asks.awaited.what, async () => {
      const other = await connect(url, 'token-dora');
      await oneCase(other, asks.awaited);
      await other.client.close();
    });
  }
  if (asks.abandoned) await step('a client that never comes back', abandoned);
  if (asks.undeclared) await step('a kind that was not declared', undeclared);
}
await main.client.close().catch(() => {});
process.exit(0);
