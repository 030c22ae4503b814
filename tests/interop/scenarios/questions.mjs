// Owns: one run of an official SDK client that answers what a legacy server asks, through the proxy between two taps, or
// directly. A second proxy, which waits for an answer only shortly, is there for the client that never comes back.
// Does not own: what is asked (asked.mjs), the checks (clients/), the servers (targets.mjs), what a client asks the runner.

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { checkWire, findingsToClient, findingsToLegacyServer, findingsToModernServer } from '../lib/wire-check.mjs';
import { driveClient, titleOf } from './sdk-clients.mjs';
import { addFront, begin, checkPrograms, OVER_HTTP } from './world.mjs';

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

/** `binary` is null for a direct run, in which the client has the era of the server. */
export async function runQuestions(context, report, clientName, target, asks, { ways = OVER_HTTP } = {}) {
  const { binary } = context;
  report.section(titleOf(`${clientName} client`, { name: `asked by ${target.name}` }, ways, binary));
  let world = null;
  try {
    world = await begin(context, target, { ways, settings: SETTINGS });
    let hastily = NO_PROXY;
    if (binary !== null && asks.abandoned) {
      const { front, where } = await addFront(context, world, HASTY);
      world.hasty = front;
      hastily = where;
    }
    const command = [...CLIENTS[clientName](context), world.where, hastily, JSON.stringify(asksOver(asks, ways))];
    await driveClient(report, `${clientName} client (questions)`, command, world);
    if (binary === null) return;
    await checkPrograms(report, world);
    checkAll(context, report, world);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await world?.close();
  }
}

function checkAll({ schema, verbose }, report, { target, upstream, front, hasty, proxies }) {
  if (!target.modern) checkDeclared(report, upstream);
  checkWire(report, 'to the client', findingsToClient(schema, front, { relayed: target.modern }));
  if (hasty !== undefined) checkWire(report, 'to the client that never comes back', findingsToClient(schema, hasty));
  checkWire(report, 'to the server', (target.modern ? findingsToModernServer : findingsToLegacyServer)(schema, upstream));
  if (verbose) proxies.forEach((proxy) => report.note(`a proxy's log:\n${proxy.tail(200)}`));
}

/**
 * Where there is but one channel, everything is asked on it, a question that nobody could answer is no call's in particular, and
 * no stream is closed that could be taken up again.
 */
function asksOver({ sessions = true, ...rest }, { upstream }) {
  const asks = { ...rest, sessions: sessions || upstream === 'stdio' };
  if (upstream === 'http') return asks;
  const verb = { sse: 'GET', stdio: 'PIPE' }[upstream];
  const { resumed: _resumed, ...kept } = asks;
  const methods = new Set(asks.askedOn.map(({ method }) => method));
  return { ...kept, askedOn: [...methods].map((method) => ({ method, verb })), undeclared: asks.undeclared && { ...asks.undeclared, isError: true } };
}

function checkDeclared(report, { entries }) {
  const told = entries.filter(({ direction, message }) => direction === 'request' && message.method === 'initialize').map(({ message }) => message.params.capabilities);
  const right = told.some((capabilities) => isDeepStrictEqual(capabilities, DECLARED)) && told.every(({ roots = {} }) => isDeepStrictEqual(roots, {}));
  report.check('the server is told what the client can be asked', right, JSON.stringify(told));
}
