// Owns: one run of an official SDK client against a legacy server, through the proxy between two taps or directly.
// Does not own: the client's checks (clients/) or the servers (targets.mjs).

import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { startJanus } from '../lib/janus.mjs';
import { freePort } from '../lib/ports.mjs';
import { Tap } from '../lib/tap.mjs';
import { checkWire, findingsToClient, findingsToLegacyServer } from '../lib/wire-check.mjs';

const CLIENT_MS = 90_000;
const EVENT_MS = 5000;

export const CLIENTS = {
  typescript: ({ node, here }) => [node, join(here, 'clients/modern-client.mjs')],
  python: ({ pythonModern, here }) => [pythonModern, join(here, 'clients/modern_client.py')],
};

/** `binary` is null for a direct run, in which the client uses the legacy era. */
export async function runSdkClient(context, report, clientName, target) {
  const { binary } = context;
  report.section(`${clientName} client, ${target.name}${binary === null ? ', directly' : ''}`);
  const open = [];
  const close = (thing) => {
    open.push(thing);
    return thing;
  };
  try {
    const port = await freePort();
    const world = { target, server: await target.start(context, port), outputs: [] };
    world.outputs.push(world.server.lines);
    close({ stop: () => world.server.stop() });
    world.restart = async () => {
      await world.server.stop('SIGKILL');
      world.server = await target.start(context, port);
      world.outputs.push(world.server.lines);
    };
    world.upstream = close(await Tap.start({ targetPort: port }));
    let front = world.upstream;
    let janus = null;
    if (binary !== null) {
      janus = await startJanus(binary, world.upstream.url);
      close(janus.child);
      front = close(await Tap.start({ targetPort: janus.port }));
    }
    await driveClient(context, report, clientName, front.url, world);
    if (janus !== null) {
      checkWire(report, 'to the client', findingsToClient(context.schema, front));
      checkWire(report, 'to the server', findingsToLegacyServer(context.schema, world.upstream));
      if (context.verbose) report.note(`the proxy's log:\n${janus.child.tail(200)}`);
    }
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

async function driveClient(context, report, clientName, url, world) {
  const [command, script] = CLIENTS[clientName](context);
  const args = [script, url, JSON.stringify(world.target.description), context.binary === null ? 'legacy' : 'modern'];
  const client = new Child(`${clientName} client`, command, args, { env: { PYTHONUNBUFFERED: '1' } });
  let checks = 0;
  let turn = Promise.resolve();
  const hear = async (text) => {
    const said = JSON.parse(text);
    if (said.ask !== undefined) {
      client.process.stdin.write(`${JSON.stringify(await answer(said, world))}\n`);
      return;
    }
    checks += 1;
    report.check(said.check, said.right, said.detail);
  };
  client.lines.subscribe(({ stream, text }) => {
    if (stream === 'stdout') turn = turn.then(() => hear(text));
  });
  const code = await client.exitWithin(CLIENT_MS);
  await turn;
  report.check('the client ran to its end', code === 0 && checks > 0, `exit code ${code}\n${client.tail()}`);
}

const ANSWERS = {
  async restart(_, world) {
    await world.restart();
    return {};
  },
  cancelled: ({ tool }, world) => cancelledUpstream(tool, world),
  'one-user-per-session': async (_, world) => oneUserPerSession(world),
  ran: async ({ tool, message }, world) => ({ times: timesRun(tool, message, world) }),
};

function answer(question, world) {
  return ANSWERS[question.ask](question, world);
}

/** Looks for `notifications/cancelled` with the id that the server knows the call by. */
async function cancelledUpstream(tool, world) {
  const { entries } = world.upstream;
  const calls = entries.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params?.name === tool);
  const id = calls.at(-1)?.message.id;
  const seen = await entries.waitFor(({ message }) => message.method === 'notifications/cancelled' && message.params?.requestId === id, EVENT_MS);
  if (seen === null) return { right: false, detail: `no notifications/cancelled for the request ${JSON.stringify(id)}` };
  if (world.target.cancelledLine === undefined) return { right: true };
  const line = await world.server.lines.waitFor(({ text }) => world.target.cancelledLine.test(text), EVENT_MS);
  return { right: line !== null, detail: 'the server got the notification, but its tool went on' };
}

/** A session id that came with two different Authorization values has crossed users. */
function oneUserPerSession(world) {
  const users = new Map();
  for (const { headers } of world.upstream.exchanges) {
    const id = headers['mcp-session-id'];
    if (id === undefined) continue;
    users.set(id, (users.get(id) ?? new Set()).add(headers.authorization));
  }
  const crossed = [...users].filter(([, tokens]) => tokens.size > 1).map(([id]) => id);
  const names = new Set([...users.values()].flatMap((tokens) => [...tokens]));
  return { right: crossed.length === 0 && names.size >= 3, detail: { crossed, users: [...names] } };
}

/** How often the tool ran with that message: by the server's own word, else by the results on the wire. */
function timesRun(tool, message, world) {
  if (world.target.ranLine !== undefined) {
    const wanted = world.target.ranLine(message);
    return world.outputs.flatMap((log) => log.filter(({ text }) => text === wanted)).length;
  }
  const { entries } = world.upstream;
  const calls = entries.filter((entry) => entry.direction === 'request' && entry.message.method === 'tools/call' && entry.message.params?.name === tool && entry.message.params?.arguments?.message === message);
  const ran = calls.filter(({ exchange, message: call }) => entries.items.some((entry) => entry.exchange === exchange && entry.message.id === call.id && entry.message.result !== undefined));
  return ran.length;
}
