// Owns: the checks that the official TypeScript client 1.x makes of what a modern server asks it through the proxy: each
// kind of question, by the SDK's own handlers, refusals, a cancellation in the middle, two users at once, and clients of
// older revisions.
// Does not own: starting anything, or what is asked and answered (scenarios/bridged-target.mjs).

import { isDeepStrictEqual } from 'node:util';

import { bridged, call, codeOf, connect, hasSessions, inOrder, leave, pause, questions, target, textOf } from './bridged.mjs';
import { askRunner, check, same, sameProgress, step } from './checks.mjs';

const CALLS_AT_ONCE = 3;
const NAME = 'What is your name?';
/** A retry that must not come would be there by then. */
const QUIET_MS = 300;

function methodOf({ tool, prompt }) {
  return tool !== undefined ? 'tools/call' : prompt !== undefined ? 'prompts/get' : 'resources/read';
}

async function oneCase(user, one) {
  const { asked, told } = user;
  const [from, heard] = [asked.items.length, told.items.length];
  user.gate = from + (one.atOnce ?? 0);
  user.answerTo = async (message) => one.answers[message];
  const steps = [];
  await askRunner('mark');
  const result = await call(user, one, one.progress && { onprogress: ({ progress }) => steps.push(progress) });
  const right = one.saysJson === undefined ? textOf(result) === one.says : isDeepStrictEqual(JSON.parse(textOf(result)), one.saysJson);
  check(`${one.what}: the result`, right && !result.isError, result);
  if (one.progress && bridged) await sameProgress(`${one.what}: the progress`, steps, one.progress, { tool: one.tool, piped: !hasSessions });
  const seen = asked.items.slice(from);
  same(`${one.what}: what the client was asked`, inOrder(questions(seen)), inOrder(one.asked.flat()));
  if (!bridged) return;
  const { times, rounds } = await askRunner('legs', { method: methodOf(one) });
  same(`${one.what}: how often the server got it`, times, one.legs ?? one.asked.length + 1);
  if (one.legs === undefined) same(`${one.what}: the rounds`, rounds, one.asked.map((round) => round.map(({ kind }) => kind).sort()));
  const pages = seen.filter(({ kind }) => kind === 'url').map(({ elicitationId }) => elicitationId);
  check(`${one.what}: each page has an id of its own`, pages.every((id) => typeof id === 'string' && id.length >= 16) && new Set(pages).size === pages.length, pages);
  if (one.completed === undefined) return;
  await pause(QUIET_MS);
  same(`${one.what}: the client hears that it is over`, told.items.slice(heard), pages.map((id) => `completed ${id}`));
}

/** An error is no answer that a modern server could be given, so the call ends with it. */
async function refusals(user) {
  await askRunner('mark');
  user.sample = async () => {
    throw new Error('the user does not want that');
  };
  const refused = await call(user, { tool: 'ask_model' });
  user.sample = async () => undefined;
  check('a model that is refused: the tool fails', refused.isError === true, refused);
  user.answerTo = async () => {
    throw new Error('nobody is there');
  };
  same('a prompt whose question is refused is an error', await codeOf(call(user, { prompt: 'introduction' })), -32603);
  for (const method of ['tools/call', 'prompts/get']) same(`a refused question of ${method} is not asked again`, (await askRunner('legs', { method })).times, 1);
}

async function cancellation(user) {
  const abort = new AbortController();
  await askRunner('mark');
  const withdrawn = new Promise((resolve) => {
    user.answerTo = (_, { signal }) => {
      signal.addEventListener('abort', () => resolve(true));
      abort.abort();
      return new Promise(() => {});
    };
  });
  const ended = await call(user, { tool: 'ask_name' }, { signal: abort.signal }).then(() => 'finished', () => 'rejected');
  same('cancelled while it asks: the call is rejected', ended, 'rejected');
  check('cancelled while it asks: the question is taken back', await Promise.race([withdrawn, pause(3000)]));
  await pause(QUIET_MS);
  same('cancelled while it asks: the server is not asked again', (await askRunner('legs', { method: 'tools/call' })).times, 1);
}

/** Two users, each with several calls at once: everyone is asked what their own calls ask, with their own token. */
async function twoUsers() {
  const names = ['alice', 'bob'];
  const numbers = Array.from({ length: CALLS_AT_ONCE }, (_, index) => index + 1);
  const users = await Promise.all(names.map((token) => connect({ token })));
  for (const user of users) user.answerTo = async () => ({ action: 'accept', content: { name: user.token } });
  const all = users.flatMap((user) => numbers.map((number) => ({ user, number })));
  const results = await Promise.all(all.map(({ user, number }) => call(user, { tool: 'ask_user', arguments: { user: user.token, call: number } })));
  same('two users: each call got its own answer', results.map(textOf), all.map(({ user }) => `Hello, ${user.token}`));
  for (const { token, asked } of users) {
    same(`two users: what ${token} was asked`, inOrder(asked.items.map(({ message }) => message)), inOrder(numbers.map((number) => `${token}, what is your name? (${number})`)));
  }
  const lines = all.map(({ user, number }) => `ended ask_user ${user.token} ${number} accept`);
  same('two users: each call ended once', (await askRunner('said', { lines })).times, lines.map(() => 1));
  if (bridged) {
    const own = await askRunner('own-token', { users: names });
    check('two users: the server got each call with its own token', own.right, own.detail);
  }
  await Promise.all(users.map(leave));
}

/** A kind that the client has not declared is not asked; the call fails in words. */
async function undeclared() {
  const user = await connect({ token: 'silent', capabilities: {} });
  const refused = await call(user, { tool: 'ask_name' });
  check('a question of a kind that was not declared: the tool fails', refused.isError === true, refused);
  await leave(user);
}

/** What a client of an older revision finds: the same, as far as its revision can say it. */
async function older(revision) {
  const user = await connect({ token: 'older', revision });
  same(`${revision} is agreed on`, user.transport.protocolVersion ?? user.transport._protocolVersion, revision);
  const structures = revision === '2025-06-18';
  const { tools } = await user.client.listTools();
  const schemas = tools.filter(({ outputSchema }) => outputSchema !== undefined).map(({ name }) => name);
  same(`${revision}: tools with an output schema`, schemas.length > 0, structures);
  const numbers = await call(user, { tool: 'numbers', arguments: { count: 2 } });
  same(`${revision}: structured output`, numbers.structuredContent, structures ? { result: [1, 2] } : undefined);
  same(`${revision}: its text`, JSON.parse(textOf(numbers)), [1, 2]);
  const types = { '2025-06-18': target.gallery, '2025-03-26': ['text', 'image', 'audio', 'text', 'resource'], '2024-11-05': ['text', 'image', 'resource', 'text', 'resource'] };
  same(`${revision}: contents of all kinds`, (await call(user, { tool: 'gallery' })).content.map(({ type }) => type), types[revision]);
  if (structures) await olderForm(user, revision);
  else check(`${revision}: a form cannot be asked, so the tool fails`, (await call(user, { tool: 'ask_name' })).isError === true);
  await leave(user);
}

/** 2025-06-18 knows neither titles of choices nor several of them, and only booleans may have a default. */
async function olderForm(user, revision) {
  const wanted = target.cases.find(({ tool }) => tool === 'ask_details').saysJson;
  const several = Object.values(wanted).filter(Array.isArray).flat();
  let fields;
  user.answerTo = async (_, __, { properties }) => {
    fields = properties;
    const answer = ([name, { title }]) => [name, name in wanted ? wanted[name] : several.some((choice) => name.endsWith(choice) || title?.endsWith(choice))];
    return { action: 'accept', content: Object.fromEntries(Object.entries(properties).map(answer)) };
  };
  const result = await call(user, { tool: 'ask_details' });
  check(`${revision}: a form with a field of each kind`, isDeepStrictEqual(JSON.parse(textOf(result)), wanted), { result, fields });
  same(`${revision}: titles of choices`, [fields?.titledSingle.enum, fields?.titledSingle.enumNames], [['value1', 'value2', 'value3'], ['Option 1', 'Option 2', 'Option 3']]);
  const kept = Object.entries(fields ?? {}).filter(([, field]) => 'default' in field).map(([name]) => name);
  same(`${revision}: fields with a default`, kept, ['sure']);
  check(`${revision}: no field takes several values`, Object.values(fields ?? {}).every(({ type }) => type !== 'array'), fields);
}

const user = await connect({ token: 'asked' });
for (const one of target.cases.filter(({ bridgedOnly }) => bridged || !bridgedOnly)) await step(one.what, () => oneCase(user, one));
await step('two users', twoUsers);
await step('a kind that was not declared', undeclared);
if (bridged) {
  await step('refusals', () => refusals(user));
  await step('a cancellation in the middle', () => cancellation(user));
  user.answerTo = async (message) => (message === NAME ? { action: 'accept', content: { name: 'Ada' } } : undefined);
  same('the session is alive after all that', textOf(await call(user, { tool: 'ask_name' })), 'Hello, Ada');
  for (const revision of ['2025-06-18', '2025-03-26', '2024-11-05']) await step(revision, () => older(revision));
}
await leave(user);
process.exit(0);
