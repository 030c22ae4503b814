// Owns: the checks that the official TypeScript client 1.x makes of what can be called of a modern server through the proxy:
// initialize, tools and their structured output, mirrored headers, prompts, resources, completion, progress, logging,
// errors, cancellation, and the end of a session.
// Does not own: starting anything, the questions (bridged-asked.mjs), what comes outside of calls (bridged-streams.mjs).

import { EmptyResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { isDeepStrictEqual } from 'node:util';

import { ALL, bridged, call, codeOf, connect, hasSessions, LATEST, leave, pause, Raw, serverOverHttp, target, textOf, way } from './bridged.mjs';
import { askRunner, check, same, step } from './checks.mjs';

const AT_ONCE = 20;
/** Nothing that is told of a call comes later than this after its answer. */
const QUIET_MS = 200;

const tool = (name, args = {}) => ({ tool: name, arguments: args });

function beginning({ client, transport }) {
  same('the server says its name', client.getServerVersion(), { name: target.serverName, version: '1.0.0' });
  check('the server says what it can do', isDeepStrictEqual(client.getServerCapabilities(), target.capabilities), client.getServerCapabilities());
  same('the instructions arrive', client.getInstructions(), target.instructions);
  same('the revision is the newest that the client knows', transport.protocolVersion ?? transport._protocolVersion, LATEST);
  if (hasSessions) check('there is a session', transport.sessionId !== undefined);
}

async function tools(user) {
  const { tools: listed } = await user.client.listTools();
  for (const [name, schema] of Object.entries(target.outputs)) {
    const found = listed.find((entry) => entry.name === name);
    check(`the output schema of ${name}`, found !== undefined && isDeepStrictEqual(withoutDialect(found.outputSchema) ?? null, schema), found);
  }
  // The SDK checks each result against the schema that was listed.
  for (const { name, arguments: args, value, text } of target.structured) {
    const result = await call(user, tool(name, args));
    check(`structured output of ${name}`, isDeepStrictEqual(result.structuredContent, value) && !result.isError, result);
    check(`the text of ${name} says the same`, isDeepStrictEqual(JSON.parse(textOf(result)), text), result);
  }
  same('contents of all kinds', (await call(user, tool('gallery'))).content.map(({ type }) => type), target.gallery);
  same('a long text arrives whole', textOf(await call(user, tool('bulk', { length: target.bulk }))).length, target.bulk);
  const messages = Array.from({ length: AT_ONCE }, (_, index) => `m${index}`);
  const answers = await Promise.all(messages.map((message) => call(user, tool('echo', { message }))));
  same('calls at once each get their own', answers.map(textOf), messages.map((message) => `Echo: ${message}`));
}

function withoutDialect(schema) {
  if (schema === undefined) return undefined;
  const { $schema: _dialect, ...rest } = schema;
  return rest;
}

async function headers(user, when) {
  for (const { arguments: args, headers: wanted } of target.headers) {
    const result = await call(user, tool('locate', args));
    check(`the server gets the arguments${when}`, !result.isError && isDeepStrictEqual(JSON.parse(textOf(result)), args), result);
    if (!bridged || !serverOverHttp) continue;
    const seen = (await askRunner('headers-of', { tool: 'locate' })).headers;
    check(`the arguments are mirrored in headers${when}`, isDeepStrictEqual(seen, wanted), `${JSON.stringify(seen)}, not ${JSON.stringify(wanted)}`);
  }
}

async function resources({ client }) {
  const listed = (await client.listResources()).resources.map(({ uri }) => uri);
  check('the resource is listed', listed.includes('fixture://greeting'), listed);
  const templates = (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate);
  for (const template of target.templates) check(`the template ${template} is listed`, templates.includes(template), templates);
  for (const { uri, text } of target.reads) same(`${uri} has its text`, (await client.readResource({ uri })).contents[0]?.text, text);
}

async function prompts({ client }) {
  const { name, arguments: args, text } = target.prompt;
  const { prompts: listed } = await client.listPrompts();
  check('the prompt is listed', listed.some((prompt) => prompt.name === name), listed);
  same('the prompt has its text', textOf(await client.getPrompt({ name, arguments: args })), text);
  const { ref, argument, values } = target.completion;
  same('completion gives the values', (await client.complete({ ref, argument })).completion.values, values);
}

async function progress(user) {
  const seen = [];
  await call(user, tool('count', { steps: 5, pause: 10 }), { onprogress: (update) => seen.push(`${update.progress}/${update.total} ${update.message}`) });
  same('progress arrives in order', seen, [1, 2, 3, 4, 5].map((number) => `${number}/5 step ${number}`));
}

async function logging(user) {
  const { client, told } = user;
  const lines = async () => {
    const from = told.items.length;
    await call(user, tool('chat'));
    await pause(QUIET_MS);
    return told.items.slice(from);
  };
  if (bridged) same('nothing is logged before a level is set', await lines(), []);
  await client.setLoggingLevel('info');
  same('log lines from the level on', await lines(), ['info: a line of info', 'warning: a line of warning']);
  await client.setLoggingLevel('warning');
  same('log lines from another level on', await lines(), ['warning: a line of warning']);
  if (!bridged) return;
  const wrong = client.request({ method: 'logging/setLevel', params: { level: 'loud' } }, EmptyResultSchema);
  same('a level that does not exist is refused', await codeOf(wrong), -32602);
  const declared = await askRunner('declared-to', { tool: 'chat' });
  same('the server is told the level', declared.level, 'warning');
  same('the server is told who asks', declared.client, 'interop-typescript-bridged');
  check('the server is told what the client can be asked', isDeepStrictEqual(declared.capabilities, { ...ALL, roots: {} }), declared.capabilities);
}

async function errors(user) {
  const { client, transport } = user;
  const session = transport.sessionId;
  const failed = await call(user, tool('fail'));
  check('a failing tool says so', failed.isError === true, failed);
  const unknown = await call(user, tool('no-such-tool')).then(({ isError }) => isError, ({ code }) => code === -32602);
  same('an unknown tool is an error', unknown, true);
  // A server that is asked directly keeps the code of its own revision.
  same('a missing resource has the code of its revision', await codeOf(client.readResource({ uri: target.missing.uri })), bridged ? target.missing.code : -32602);
  const code = await codeOf(client.getPrompt({ name: 'no-such-prompt' }));
  check('an unknown prompt is an error', code === -32602 || code === -32603, code);
  same('an unknown method is not there', await codeOf(client.request({ method: 'no/such/method' }, EmptyResultSchema)), -32601);
  // Whoever speaks on a channel may be of either era, from one message to the next.
  same('a modern method is not there', await codeOf(client.request({ method: 'server/discover' }, EmptyResultSchema)), bridged && !hasSessions ? -32602 : -32601);
  await client.ping();
  await client.sendRootsListChanged();
  same('the session outlives errors', [transport.sessionId, textOf(await call(user, tool('echo', { message: 'still there' })))], [session, 'Echo: still there']);
}

async function cancellation(user) {
  const abort = new AbortController();
  let begun;
  const started = new Promise((resolve) => (begun = resolve));
  const slow = call(user, tool('wait', { seconds: 60 }), { signal: abort.signal, onprogress: begun }).then(() => 'finished', () => 'rejected');
  await started;
  abort.abort();
  same('a cancelled call is rejected', await slow, 'rejected');
  if (!bridged) return;
  const seen = await askRunner('cancelled-upstream', { tool: 'wait', line: 'wait was cancelled' });
  check('the server sees the call end', seen.right, seen.detail);
  same('a call after it is answered', textOf(await call(user, tool('echo', { message: 'after' }))), 'Echo: after');
}

/** Several messages in one body are for 2025-03-26 alone. */
async function batches() {
  const messages = [{ id: 1, method: 'ping' }, { id: 'two', method: 'tools/list' }, { method: 'notifications/of/nobody' }];
  const batch = messages.map((message) => ({ jsonrpc: '2.0', ...message }));
  const old = await new Raw('batch').begin({}, '2025-03-26');
  const answer = await old.post(batch);
  const answers = await answer.json();
  same('a batch of 2025-03-26 is answered as one', [answer.status, answers.map(({ id }) => id).sort()], [200, [1, 'two']]);
  check('each of it is answered', answers.every(({ id, result }) => (id === 1 ? isDeepStrictEqual(result, {}) : result.tools.length > 0)), answers);
  same('a batch of notifications has no answer', (await old.post([batch[2]])).status, 202);
  const raw = await new Raw('batch').begin();
  same('a batch of a newer revision is refused', (await raw.post(batch)).status, 400);
  await old.bare('DELETE');
  await raw.bare('DELETE');
}

/** A session has its own end, and whoever comes after it begins again. */
async function ends() {
  const user = await connect({ token: 'gone' });
  const raw = new Raw('gone');
  const session = { ...raw.headers, 'Mcp-Session-Id': user.transport.sessionId, 'MCP-Protocol-Version': LATEST };
  if (bridged) {
    const { 'Mcp-Session-Id': _session, ...none } = session;
    const list = { id: 1, method: 'tools/list' };
    const status = async (message, headers) => (await raw.post(message, { headers })).status;
    same('without a session: 400', await status(list, none), 400);
    same('a session that never was: 404', await status(list, { ...session, 'Mcp-Session-Id': 'never' }), 404);
    same("another user's session: 404", await status(list, { ...session, Authorization: 'Bearer token-thief' }), 404);
    same('a version that does not exist: 400', await status(list, { ...session, 'MCP-Protocol-Version': '2026-13-01' }), 400);
    same('no version: fine', await status(list, { Authorization: session.Authorization, 'Mcp-Session-Id': user.transport.sessionId }), 200);
    same('a stream of no session: 405', (await raw.bare('GET', none)).status, 405);
    same('a stream of a session that never was: 404', (await raw.bare('GET', { ...session, 'Mcp-Session-Id': 'never' })).status, 404);
  }
  const deleted = await raw.bare('DELETE', session);
  check('the session can be ended', deleted.ok, deleted.status);
  if (bridged) same('an ended session is not found', await codeOf(user.client.listTools()), 404);
  await user.client.close();
  const again = await connect({ token: 'gone' });
  check('a client can begin again', again.transport.sessionId !== session['Mcp-Session-Id']);
  same('and is served', textOf(await call(again, tool('echo', { message: 'again' }))), 'Echo: again');
  await leave(again);
}

const user = await connect().catch((error) => {
  check('connects', false, `${error?.name}: ${error?.message}`);
  process.exit(1);
});
await step('initialize', () => beginning(user));
await step('headers without a list', async () => {
  const cold = await connect({ token: 'cold' });
  await headers(cold, ', of a tool that was never listed');
  await leave(cold);
});
await step('tools', () => tools(user));
await step('headers', () => headers(user, ''));
await step('resources', () => resources(user));
await step('prompts', () => prompts(user));
await step('progress', () => progress(user));
await step('logging', () => logging(user));
await step('errors', () => errors(user));
await step('cancellation', () => cancellation(user));
if (bridged && hasSessions) await step('batches', batches);
if (hasSessions) await step('the end of a session', ends);
await leave(user);
if (way === 'stdio') same('nothing that was started is left', (await askRunner('all-gone')).left, []);
process.exit(0);
