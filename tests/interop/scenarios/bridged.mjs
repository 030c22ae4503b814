// Owns: one run of an official legacy SDK client against a modern server, through the proxy between two taps, or without it
// against a server that serves legacy sessions. The proxy has a key for its sessions, so that they outlive its restart.
// Does not own: the client's checks (clients/), what they expect (bridged-target.mjs), what a client asks the runner.

import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { startJanus } from '../lib/janus.mjs';
import { freePort } from '../lib/ports.mjs';
import { Tap } from '../lib/tap.mjs';
import { findingsToBridgedClient, findingsToBridgedServer } from '../lib/wire-bridged.mjs';
import { checkWire } from '../lib/wire-check.mjs';
import { DESCRIPTION } from './bridged-target.mjs';
import { driveClient } from './sdk-clients.mjs';

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

/** `start` takes whom the server is to serve: the modern fixture knows `modern`, `dual` and `sessions`. */
export const modern = {
  name: 'modern SDK 2.x server',
  serverName: 'interop-modern',
  start: ({ node, here }, port, serves) => started('SDK 2.x server', node, [join(here, 'fixtures/modern-server.mjs'), String(port), serves]),
};

export const pymodern = {
  name: 'modern Python mcp 2.x server',
  serverName: 'interop-pymodern',
  start: ({ pythonModern, here }, port, serves) => started('Python mcp 2.x server', pythonModern, [join(here, 'fixtures/modern_server.py'), String(port), serves]),
  /** As a dual server, it keeps sessions for legacy clients, which the TypeScript one does not. */
  keepsSessions: true,
};

async function started(name, command, args) {
  const child = new Child(name, command, args);
  await child.waitForLine(/^listening on/, START_MS);
  return child;
}

/** `binary` is null for a direct run, for which the server has to serve legacy sessions. */
export async function runBridged(context, report, clientName, target) {
  const { binary } = context;
  report.section(`legacy ${clientName} client, ${target.name}${binary === null ? ', directly' : ''}`);
  const world = await begin(context, target, binary === null ? 'sessions' : 'modern').catch((error) => ({ error }));
  try {
    if (world.error !== undefined) throw world.error;
    const description = JSON.stringify({ ...DESCRIPTION, serverName: target.serverName });
    const url = (world.front ?? world.upstream).url;
    const mode = binary === null ? 'direct' : 'bridged';
    for (const part of PARTS[mode]) {
      const command = [...CLIENTS[clientName](context, part), url, description, mode];
      await driveClient(report, `legacy ${clientName} client (${part})`, command, world);
    }
    if (binary === null) return;
    checkWire(report, 'to the client', findingsToBridgedClient(context.schema, world.front));
    checkWire(report, 'to the server', findingsToBridgedServer(context.schema, world.upstream));
    if (context.verbose) report.note(`the proxy's log:\n${world.janus.tail(200)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const stop of (world.open ?? []).reverse()) await stop();
  }
}

/** The clients of both generations before a server that serves both eras, through a proxy that is told nothing of it. */
export async function runDual(context, report, target) {
  report.section(`clients of both eras, ${target.name}, serving both`);
  const world = await begin(context, target, 'dual').catch((error) => ({ error }));
  try {
    if (world.error !== undefined) throw world.error;
    const description = JSON.stringify({ ...DESCRIPTION, serverName: target.serverName });
    const command = [context.node, join(context.here, 'clients/dual-client.mjs'), world.front.url, description, target.keepsSessions ? 'sessions' : 'none'];
    await driveClient(report, 'clients of both eras', command, world);
    if (context.verbose) report.note(`the proxy's log:\n${world.janus.tail(200)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const stop of (world.open ?? []).reverse()) await stop();
  }
}

/** The server, the taps and the proxy, and how to restart what may be restarted. */
async function begin(context, target, serves) {
  const port = await freePort();
  const world = { target, open: [], server: await target.start(context, port, serves) };
  world.open.push(() => world.server.stop());
  world.restart = async () => {
    await world.server.stop('SIGKILL');
    world.server = await target.start(context, port, serves);
  };
  world.upstream = await Tap.start({ targetPort: port });
  world.open.push(() => world.upstream.stop());
  if (context.binary === null) return world;
  const proxy = async () => {
    const janus = await startJanus(context.binary, world.upstream.url, { settings: SETTINGS });
    world.janus = janus.child;
    return janus.port;
  };
  world.front = await Tap.start({ targetPort: await proxy() });
  world.open.push(() => world.front.stop(), () => world.janus.stop());
  world.restartProxy = async () => {
    await world.janus.stop('SIGKILL');
    world.upstream.epoch += 1;
    world.front.targetPort = await proxy();
    return {};
  };
  return world;
}
