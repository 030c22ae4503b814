// Owns: one run of an official SDK client that answers what a legacy server asks, through the proxy between two taps, or
// directly. A second proxy, which waits for an answer only shortly, is there for the client that never comes back.
// Does not own: what is asked (asked.mjs), the checks (clients/), the servers (targets.mjs), what a client asks the runner.

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { startJanus } from '../lib/janus.mjs';
import { freePort } from '../lib/ports.mjs';
import { Tap } from '../lib/tap.mjs';
import { checkWire, findingsToClient, findingsToLegacyServer } from '../lib/wire-check.mjs';
import { driveClient } from './sdk-clients.mjs';

const CLIENTS = {
  typescript: ({ node, here }) => [node, join(here, 'clients/questions-client.mjs')],
  python: ({ pythonModern, here }) => [pythonModern, join(here, 'clients/questions_client.py')],
};

/**
 * Where a server never tells that a page was visited, each retry waits for all of `url`. On a machine with much to do, what
 * is asked at once comes further apart than `gather` is by default.
 */
const SETTINGS = ['timeouts.url = "2s"', 'timeouts.gather = "100ms"'];
const HASTY = ['timeouts.answer = "1s"'];
const NO_PROXY = '-';

/** What the clients declare, as it is told the server: nobody would tell it of changed roots. */
const DECLARED = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** `binary` is null for a direct run, in which the client uses the legacy era. */
export async function runQuestions(context, report, clientName, target, asks) {
  const { binary } = context;
  report.section(`${clientName} client, asked by ${target.name}${binary === null ? ', directly' : ''}`);
  const open = [];
  const close = (thing) => {
    open.push(thing);
    return thing;
  };
  try {
    const port = await freePort();
    const world = { target, server: close(await target.start(context, port)) };
    world.upstream = close(await Tap.start({ targetPort: port }));
    const proxies = [];
    const front = async (settings) => {
      const janus = await startJanus(binary, world.upstream.url, { settings });
      proxies.push(close(janus.child));
      return close(await Tap.start({ targetPort: janus.port }));
    };
    if (binary !== null) {
      world.front = await front(SETTINGS);
      world.hasty = await front(HASTY);
    }
    const urls = [world.front?.url ?? world.upstream.url, world.hasty?.url ?? NO_PROXY];
    await driveClient(report, `${clientName} client (questions)`, [...CLIENTS[clientName](context), ...urls, JSON.stringify(asks)], world);
    if (binary === null) return;
    checkDeclared(report, world.upstream);
    checkWire(report, 'to the client', findingsToClient(context.schema, world.front));
    checkWire(report, 'to the client that never comes back', findingsToClient(context.schema, world.hasty));
    checkWire(report, 'to the server', findingsToLegacyServer(context.schema, world.upstream));
    if (context.verbose) proxies.forEach((proxy) => report.note(`a proxy's log:\n${proxy.tail(200)}`));
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

function checkDeclared(report, { entries }) {
  const told = entries.filter(({ direction, message }) => direction === 'request' && message.method === 'initialize').map(({ message }) => message.params.capabilities);
  const right = told.some((capabilities) => isDeepStrictEqual(capabilities, DECLARED)) && told.every(({ roots = {} }) => isDeepStrictEqual(roots, {}));
  report.check('the server is told what the client can be asked', right, JSON.stringify(told));
}
