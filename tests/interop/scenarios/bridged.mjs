// Owns: one run of an official legacy SDK client against a modern server, through the proxy between two taps, or without it
// against a server that serves legacy sessions. The proxy has a key for its sessions, so that they outlive its restart.
// Does not own: the client's checks (clients/), what they expect (bridged-target.mjs), what a client asks the runner.

import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { findingsToBridgedClient, findingsToBridgedServer } from '../lib/wire-bridged.mjs';
import { checkWire } from '../lib/wire-check.mjs';
import { DESCRIPTION } from './bridged-target.mjs';
import { driveClient, titleOf } from './sdk-clients.mjs';
import { begin, checkPrograms, OVER_HTTP } from './world.mjs';

const START_MS = 20_000;
const KEY = Buffer.alloc(32, 7).toString('base64');
/** Retries that bring no answers come soon, and so does a stream that broke. */
const SETTINGS = [`session.key = "${KEY}"`, 'timeouts.pace = "50ms"', 'timeouts.reconnect = "100ms"'];

const CLIENTS = {
  typescript: ({ node, here }, part) => [node, join(here, `clients/bridged-${part}.mjs`)],
  python: ({ pythonLegacy, here }, part) => [pythonLegacy, join(here, `clients/bridged_${part}.py`)],
};
/** What breaks and is taken up again is the proxy's own. */
const PARTS = { direct: ['calls', 'asked'], bridged: ['calls', 'asked', 'streams'] };

/** `start` and `command` take whom the server is to serve: the modern fixture knows `modern`, `dual` and `sessions`. */
export const modern = {
  name: 'modern SDK 2.x server',
  serverName: 'interop-modern',
  modern: true,
  start: (context, port, serves) => started('SDK 2.x server', modern.command(context, serves, port)),
  command: ({ node, here }, serves = 'modern', port = 'stdio') => [node, join(here, 'fixtures/modern-server.mjs'), String(port), serves],
};

export const pymodern = {
  name: 'modern Python mcp 2.x server',
  serverName: 'interop-pymodern',
  modern: true,
  start: (context, port, serves) => started('Python mcp 2.x server', pymodern.command(context, serves, port)),
  command: ({ pythonModern, here }, serves = 'modern', port = 'stdio') => [pythonModern, join(here, 'fixtures/modern_server.py'), String(port), serves],
  /** As a dual server, it keeps sessions for legacy clients, which the TypeScript one does not. */
  keepsSessions: true,
  /** Over stdio the SDK serves whoever speaks first, so that the proxy has to be told to be modern there. */
  alwaysDual: true,
};

async function started(name, [command, ...args]) {
  const child = new Child(name, command, args);
  await child.waitForLine(/^listening on/, START_MS);
  return child;
}

/** `binary` is null for a direct run, for which the server has to serve legacy sessions. */
export async function runBridged(context, report, clientName, target, { ways = OVER_HTTP } = {}) {
  const { binary } = context;
  report.section(titleOf(`legacy ${clientName} client`, target, ways, binary));
  let world = null;
  try {
    const era = ways.upstream === 'stdio' && target.alwaysDual ? ['era = "modern"'] : [];
    world = await begin(context, target, { ways, serves: binary === null ? 'sessions' : 'modern', settings: [...SETTINGS, ...era] });
    const mode = binary === null ? 'direct' : 'bridged';
    for (const part of PARTS[mode]) {
      const command = [...CLIENTS[clientName](context, part), world.where, describe(target, ways), mode];
      await driveClient(report, `legacy ${clientName} client (${part})`, command, world);
    }
    if (binary === null) return;
    await checkPrograms(report, world);
    checkWire(report, 'to the client', findingsToBridgedClient(context.schema, world.front));
    const processes = ways.front === 'stdio' ? world.front.exchanges.length : 1;
    checkWire(report, 'to the server', findingsToBridgedServer(context.schema, world.upstream, { processes }));
    if (context.verbose) world.proxies.forEach((proxy) => report.note(`the proxy's log:\n${proxy.tail(200)}`));
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await world?.close();
  }
}

/** The clients of both generations before a server that serves both eras, through a proxy that is told nothing of it. */
export async function runDual(context, report, target, { ways = OVER_HTTP } = {}) {
  report.section(titleOf('clients of both eras', { name: `${target.name}, serving both` }, ways, context.binary));
  let world = null;
  try {
    world = await begin(context, target, { ways, serves: 'dual', settings: SETTINGS });
    // A program is a session, as long as it runs.
    const sessions = target.keepsSessions || ways.upstream === 'stdio' ? 'sessions' : 'none';
    const command = [context.node, join(context.here, 'clients/dual-client.mjs'), world.where, describe(target, ways), sessions];
    await driveClient(report, 'clients of both eras', command, world);
    if (context.verbose) world.proxies.forEach((proxy) => report.note(`the proxy's log:\n${proxy.tail(200)}`));
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await world?.close();
  }
}

function describe({ serverName }, ways) {
  return JSON.stringify({ ...DESCRIPTION, serverName, ways });
}
