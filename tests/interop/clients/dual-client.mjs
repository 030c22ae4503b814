// Owns: the checks that the official TypeScript clients of both generations make, through one proxy, of a server that serves
// both eras: each gets the pair that it can do most with. argv[4] says whether the server keeps sessions for legacy clients.
// Does not own: starting anything, or what the server is like (scenarios/bridged-target.mjs).

import { Client as ModernClient } from '@modelcontextprotocol/client';
import { isDeepStrictEqual } from 'node:util';

import { call, connect, target, textOf, url } from './bridged.mjs';
import { askRunner, check, same, step } from './checks.mjs';
import { reach } from './reach-modern.mjs';

const keepsSessions = process.argv[4] === 'sessions';

async function plainThings(user, what) {
  same(`${what}: the server says its name`, user.client.getServerVersion()?.name, target.serverName);
  await user.client.listTools();
  same(`${what}: a tool answers`, textOf(await call(user, { tool: 'echo', arguments: { message: 'hello' } })), 'Echo: hello');
  const sum = await call(user, { tool: 'sum', arguments: { a: 2, b: 40 } });
  check(`${what}: structured output`, isDeepStrictEqual(sum.structuredContent, { sum: 42 }), sum);
  const seen = [];
  await call(user, { tool: 'count', arguments: { steps: 3, pause: 10 } }, { onprogress: ({ progress }) => seen.push(progress) });
  same(`${what}: progress`, seen, [1, 2, 3]);
  same(`${what}: a resource`, textOf(await user.client.readResource({ uri: 'fixture://users/ada' })), 'User ada');
  same(`${what}: a prompt`, textOf(await user.client.getPrompt(target.prompt)), target.prompt.text);
}

async function pair(token, expected) {
  same(`the pair of ${token}`, (await askRunner('eras-of', { token: `token-${token}` })).eras, [expected]);
}

/** It asks for nothing that only sessions or the bridge could give it. */
async function quiet() {
  await askRunner('mark');
  const user = await connect({ token: 'quiet', capabilities: {} });
  await plainThings(user, 'a legacy client that cannot be asked');
  await pair('quiet', 'legacy');
  await user.client.close();
}

/** A server that forgets its legacy clients after each request could never ask one. */
async function asked() {
  await askRunner('mark');
  const user = await connect({ token: 'asked' });
  await plainThings(user, 'a legacy client that can be asked');
  check('a legacy client that can be asked has a session', user.transport.sessionId !== undefined);
  await pair('asked', keepsSessions ? 'legacy' : 'modern');
  if (!keepsSessions) {
    user.answerTo = async () => ({ action: 'accept', content: { name: 'Ada' } });
    same('and is asked', textOf(await call(user, { tool: 'ask_name' })), 'Hello, Ada');
    same('for all that it declared', textOf(await call(user, { tool: 'ask_three_kinds' })), 'Hello, Ada. The model says: Paris. file:///ada');
  }
  await user.transport.terminateSession();
  await user.client.close();
}

async function modern() {
  await askRunner('mark');
  const client = new ModernClient({ name: 'interop-typescript-dual', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(reach(url, 'token-modern'));
  same('a modern client speaks the modern revision', client.getProtocolEra(), 'modern');
  const result = await client.callTool({ name: 'sum', arguments: { a: 2, b: 40 } });
  check('a modern client gets its results', isDeepStrictEqual(result.structuredContent, { sum: 42 }), result);
  await pair('modern', 'modern');
  await client.close();
}

await step('a modern client', modern);
await step('a legacy client that cannot be asked', quiet);
await step('a legacy client that can be asked', asked);
await step('a modern client, after those', modern);
process.exit(0);
