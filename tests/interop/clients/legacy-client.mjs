// Owns: the checks that the official TypeScript client 1.x (2025-11-25) makes against the legacy server that is described in
// argv[3] and reached at argv[2]; argv[4] says what happens to its session when the server restarts: `kept` or `lost`.
// Does not own: how it is reached (reach-legacy.mjs), or what the server is like (scenarios/targets.mjs).

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { askRunner, check, same, sameProgress, step } from './checks.mjs';
import { reach, wayOf } from './reach-legacy.mjs';

const [where, targetText, session] = process.argv.slice(2);
const target = JSON.parse(targetText);
/** Elsewhere a session is a connection, and ends with it. */
const hasSessions = wayOf(where) === 'http';
const ROOT = { uri: 'file:///ada', name: 'ada' };

async function connect() {
  const client = new Client(
    { name: 'interop-typescript-legacy', version: '1.0.0' },
    { capabilities: { elicitation: {}, sampling: {}, roots: { listChanged: true } } },
  );
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }));
  client.setRequestHandler(CreateMessageRequestSchema, async () => ({
    role: 'assistant',
    content: { type: 'text', text: 'Paris' },
    model: 'none',
    stopReason: 'endTurn',
  }));
  client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [ROOT] }));
  const transport = reach(where, 'token-main');
  await client.connect(transport);
  return { client, transport };
}

const textOf = (result) => result.content.map((block) => block.text ?? '').join('\n');

async function calls(client) {
  same('server name', client.getServerVersion()?.name, target.serverName);
  const listed = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of target.tools) check(`tool ${name} is listed`, listed.includes(name), listed);
  for (const { name, arguments: args, text, isError = false } of target.calls) {
    const result = await client.callTool({ name, arguments: args });
    if (text !== undefined) same(`tool ${name} answers`, textOf(result).split('\n')[0], text);
    same(`tool ${name} is ${isError ? 'an' : 'no'} error`, result.isError ?? false, isError);
  }
  await client.ping();
  if (target.reads) await reads(client);
}

async function reads(client) {
  for (const read of target.reads) {
    const { contents } = await client.readResource({ uri: read.uri });
    check(`resource ${read.uri} has its text`, contents[0]?.text?.includes(read.text), contents);
  }
  const { messages } = await client.getPrompt({ name: target.prompt.name, arguments: target.prompt.arguments });
  same(`prompt ${target.prompt.name} has its text`, messages[0]?.content?.text, target.prompt.text);
  await client.setLoggingLevel('warning');
  check('a log level is accepted', true);
}

async function progress(client) {
  const seen = [];
  const { name, arguments: args, steps } = target.progress;
  await client.callTool({ name, arguments: args }, undefined, { onprogress: (update) => seen.push(update.progress) });
  await sameProgress('progress arrives in order', seen, steps, { tool: name, piped: !hasSessions });
}

async function cancellation(client) {
  const abort = new AbortController();
  let begun;
  const started = new Promise((resolve) => {
    begun = resolve;
  });
  const slow = client
    .callTool(target.slow, undefined, { signal: abort.signal, onprogress: begun })
    .then(() => 'finished', () => 'rejected');
  await started;
  abort.abort();
  same('a cancelled call is rejected', await slow, 'rejected');
  const seen = await askRunner('cancelled', { tool: target.slow.name });
  check('the server was told of the cancellation', seen.right, seen.detail);
}

/** They are opened in the background, and a question that is asked on one waits for that. */
async function streams(when) {
  if (hasSessions) check(`the streams of the session are open${when}`, (await askRunner('streams-stand')).right);
}

async function questions(client, when) {
  for (const { name, arguments: args, method, verb, text } of target.questions) {
    await step(`question of ${name}${when}`, async () => {
      const result = await client.callTool({ name, arguments: args }, undefined, { timeout: 10_000 });
      check(`${name} got its answer${when}`, textOf(result).includes(text), result);
      const seen = await askRunner('asked-on', { method, verb });
      check(`${name} asked on the stream of ${verb}${when}`, seen.right, seen.detail);
    });
  }
}

async function together(client) {
  const { name } = target.echo;
  const messages = Array.from({ length: 20 }, (_, index) => `m${index}`);
  const answers = await Promise.all(messages.map((message) => client.callTool({ name, arguments: { message } })));
  same('calls at once each get their own', answers.map((answer) => textOf(answer)), messages.map((message) => `Echo: ${message}`));
}

async function restart(connection) {
  const { client, transport } = connection;
  const before = transport.sessionId;
  await askRunner('restart');
  const call = () => client.callTool(target.calls[0]).then(textOf);
  if (session === 'kept') {
    same('a call after the restart is answered', (await call()).split('\n')[0], target.calls[0].text);
    same('the session is the same', transport.sessionId, before);
    await streams(' after the restart');
    await questions(client, ' after the restart');
    return connection;
  }
  same('a call in the lost session is refused', await call().then(() => 'answered', () => 'refused'), 'refused');
  await client.close();
  const again = await connect();
  check('another session is another', again.transport.sessionId !== before, before);
  await step('calls in another session', () => calls(again.client));
  return again;
}

let connection = await connect();
if (hasSessions) check('there is a session', connection.transport.sessionId !== undefined);
const { client } = connection;
await step('calls', () => calls(client));
if (target.progress) await step('progress', () => progress(client));
if (target.slow) await step('cancellation', () => cancellation(client));
if (target.echo) await step('calls at once', () => together(client));
if (target.questions) {
  await streams('');
  await questions(client, '');
}
if (hasSessions) {
  await step('restart', async () => {
    connection = await restart(connection);
  });
}
await step('the end', async () => {
  await connection.transport.terminateSession?.();
  await connection.client.close();
  check('the session is ended', true);
  if (wayOf(where) === 'stdio') same('nothing that was started is left', (await askRunner('all-gone')).left, []);
});
process.exit(0);
