// Owns: the checks that the official TypeScript client 2.x makes, pinned to 2026-07-28 or, as a host, with what it finds, against
// the server that is described in argv[3] and reached at argv[2].
// Does not own: how it is reached (reach-modern.mjs), or what the server is like (scenarios/targets.mjs).

import { Client } from '@modelcontextprotocol/client';
import { isDeepStrictEqual } from 'node:util';

import { askRunner, check, same, sameProgress, step } from './checks.mjs';
import { reach } from './reach-modern.mjs';

const [where, targetText, mode] = process.argv.slice(2);
const target = JSON.parse(targetText);
/** Hosts find out for themselves what they have started. */
const modern = target.ways.front === 'stdio' ? 'auto' : { pin: '2026-07-28' };
const versionNegotiation = { mode: mode === 'legacy' ? 'legacy' : modern };

async function connect(token) {
  const client = new Client({ name: 'interop-typescript', version: '1.0.0' }, { versionNegotiation });
  await client.connect(reach(where, token));
  return client;
}

const textOf = (result) => result.content.find((block) => block.type === 'text')?.text;

async function discovery(client) {
  same('era of the connection', client.getProtocolEra(), mode === 'legacy' ? 'legacy' : 'modern');
  same('server name', client.getServerVersion()?.name, target.serverName);
  for (const capability of target.capabilities) {
    check(`capability ${capability}`, client.getServerCapabilities()?.[capability] !== undefined);
  }
}

async function tools(client) {
  const listed = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of target.tools) check(`tool ${name} is listed`, listed.includes(name), listed);
  for (const call of target.calls) {
    const result = await client.callTool({ name: call.name, arguments: call.arguments });
    if (call.text !== undefined) same(`tool ${call.name} answers`, textOf(result), call.text);
    same(`tool ${call.name} is ${call.isError ? 'an' : 'no'} error`, result.isError ?? false, call.isError ?? false);
    if (call.structured) check(`tool ${call.name} gives structured content`, isDeepStrictEqual(result.structuredContent, call.structured), result);
  }
}

async function resources(client) {
  const listed = (await client.listResources()).resources.map((resource) => resource.uri);
  const templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
  for (const uri of target.resources) check(`resource ${uri} is listed`, listed.includes(uri), listed);
  for (const uri of target.templates) check(`template ${uri} is listed`, templates.includes(uri), templates);
  for (const read of target.reads) {
    const { contents } = await client.readResource({ uri: read.uri });
    same(`resource ${read.uri} has its URI`, contents[0]?.uri, read.uri);
    check(`resource ${read.uri} has its text`, contents[0]?.text?.includes(read.text), contents);
  }
}

async function prompts(client) {
  const listed = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  for (const name of target.prompts) check(`prompt ${name} is listed`, listed.includes(name), listed);
  const { messages } = await client.getPrompt({ name: target.prompt.name, arguments: target.prompt.arguments });
  same(`prompt ${target.prompt.name} has its text`, messages[0]?.content?.text, target.prompt.text);
}

async function completion(client) {
  const { ref, argument, context, values } = target.completion;
  const result = await client.complete({ ref, argument, ...(context && { context: { arguments: context } }) });
  same('completion gives the values', result.completion.values, values);
}

async function progress(client) {
  const seen = [];
  const { name, arguments: args, steps } = target.progress;
  const result = await client.callTool({ name, arguments: args }, { onprogress: (update) => seen.push(update.progress) });
  check('the call with progress ends well', !result.isError, result);
  await sameProgress('progress arrives in order', seen, steps, { tool: name, piped: target.ways.front !== 'http' });
}

async function cancellation(client) {
  const abort = new AbortController();
  const { name, arguments: args, line } = target.slow;
  const started = new Promise((resolve) => {
    abort.signal.addEventListener('abort', resolve);
    setTimeout(resolve, 10_000).unref();
    slow = client
      .callTool({ name, arguments: args }, { signal: abort.signal, onprogress: resolve })
      .then(() => 'finished', () => 'rejected');
  });
  await started;
  abort.abort();
  same('a cancelled call is rejected', await slow, 'rejected');
  // A modern server is told by the end of the stream, where there is one.
  const seen = await askRunner(target.modern ? 'cancelled-upstream' : 'cancelled', { tool: name, line });
  check('the server was told of the cancellation', seen.right, seen.detail);
  const after = target.calls[0];
  const result = await client.callTool({ name: after.name, arguments: after.arguments });
  same('a call after the cancelled one answers', textOf(result), after.text);
}
let slow;

async function errors(client) {
  const unknown = await client.callTool({ name: 'no-such-tool', arguments: {} }).then(
    (result) => ({ isError: result.isError, text: textOf(result) }),
    (error) => ({ code: error.code }),
  );
  check('an unknown tool is an error', unknown.code === -32602 || unknown.isError === true, unknown);
  if (target.failing) {
    const failed = await client.callTool({ name: target.failing, arguments: {} });
    check('a failing tool says isError', failed.isError === true, failed);
  }
  const missing = await client.readResource({ uri: target.missing.uri }).then(
    () => 'a result',
    (error) => error.code,
  );
  const wanted = mode === 'legacy' ? target.missing.legacyCode : target.missing.modernCode;
  same('a missing resource has its code', missing, wanted);
}

async function twoUsers() {
  const users = await Promise.all(['alice', 'bob'].map(async (name) => ({ name, client: await connect(`token-${name}`) })));
  const rounds = Array.from({ length: 10 }, (_, round) => round);
  const crossed = (
    await Promise.all(
      users.flatMap(({ name, client }) =>
        rounds.map(async (round) => {
          const result = await client.callTool({ name: target.echo.name, arguments: { message: `${name} ${round}` } });
          return textOf(result) === `Echo: ${name} ${round}` ? null : `${name} ${round} got ${textOf(result)}`;
        }),
      ),
    )
  ).filter((line) => line !== null);
  same('twenty calls of two users at once get their own answers', crossed, []);
  if (target.session) {
    await Promise.all(users.map(({ name, client }) => client.callTool({ name: target.session.keep, arguments: { value: name } })));
    const recalled = await Promise.all(users.map(({ client }) => client.callTool({ name: target.session.recall, arguments: {} })));
    same('each user has a session of its own that lasts', recalled.map(textOf), ['alice', 'bob']);
  }
  if (!target.modern || target.ways.upstream === 'stdio') {
    const seen = await askRunner('one-user-per-session');
    check('no upstream session served two users', seen.right, seen.detail);
  }
  await Promise.all(users.map(({ client }) => client.close()));
}

async function restart(client) {
  const call = (message) => client.callTool({ name: target.echo.name, arguments: { message } });
  same('a call before the restart answers', textOf(await call('before restart')), 'Echo: before restart');
  await askRunner('restart');
  same('the call after the restart answers', textOf(await call('after restart')), 'Echo: after restart');
  for (const message of ['before restart', 'after restart']) {
    const seen = await askRunner('ran', { tool: target.echo.name, message });
    same(`the tool ran once, ${message}`, seen.times, 1);
  }
}

const client = await connect('token-main').catch((error) => {
  check('connects', false, `${error?.name}: ${error?.message}`);
  process.exit(1);
});
await step('discovery', () => discovery(client));
await step('tools', () => tools(client));
if (target.resources) await step('resources', () => resources(client));
if (target.prompts) await step('prompts', () => prompts(client));
if (target.completion) await step('completion', () => completion(client));
if (target.progress) await step('progress', () => progress(client));
if (target.missing) await step('errors', () => errors(client));
if (target.slow) await step('cancellation', () => cancellation(client));
if (target.echo) await step('two users', () => twoUsers());
// A legacy client has no way to survive the loss of its session, and neither has one that talks to the server itself.
if (target.echo && mode !== 'legacy' && target.ways.proxied) await step('restart', () => restart(client));
await client.close().catch(() => {});
process.exit(0);
