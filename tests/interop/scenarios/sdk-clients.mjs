// Owns: one run of an official SDK client against a server, through the proxy between two taps or directly.
// Does not own: the client's checks (clients/), the servers (targets.mjs), or what a client asks the runner (answers.mjs).

import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { startJanus } from '../lib/janus.mjs';
import { freePort } from '../lib/ports.mjs';
import { Tap } from '../lib/tap.mjs';
import { checkWire, findingsToClient, findingsToLegacyServer, findingsToModernServer } from '../lib/wire-check.mjs';
import { answer } from './answers.mjs';

const CLIENT_MS = 120_000;

/** `calls` checks what can be called, `listen` what is heard of changes; the latter ends the proxy. */
export const CLIENTS = {
  typescript: {
    calls: ({ node, here }) => [node, join(here, 'clients/modern-client.mjs')],
    listen: ({ node, here }) => [node, join(here, 'clients/listen-client.mjs')],
  },
  python: {
    calls: ({ pythonModern, here }) => [pythonModern, join(here, 'clients/modern_client.py')],
    listen: ({ pythonModern, here }) => [pythonModern, join(here, 'clients/listen_client.py')],
  },
};

/** `binary` is null for a direct run, in which the client uses the legacy era, that has no `subscriptions/listen`. */
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
    const world = { target, server: await target.start(context, port), outputs: [], restartedAt: 0 };
    world.outputs.push(world.server.lines);
    close({ stop: () => world.server.stop() });
    world.restart = async () => {
      await world.server.stop('SIGKILL');
      world.restartedAt = world.upstream.exchanges.length;
      world.server = await target.start(context, port);
      world.outputs.push(world.server.lines);
    };
    world.upstream = close(await Tap.start({ targetPort: port }));
    let front = world.upstream;
    let janus = null;
    if (binary !== null) {
      janus = await startJanus(binary, world.upstream.url);
      close(janus.child);
      world.janus = janus.child;
      front = close(await Tap.start({ targetPort: janus.port }));
    }
    if (!target.modern) await drive(context, report, clientName, 'calls', front.url, world);
    if (janus !== null) {
      await drive(context, report, clientName, 'listen', front.url, world);
      checkWire(report, 'to the client', findingsToClient(context.schema, front));
      const toServer = target.modern ? findingsToModernServer : findingsToLegacyServer;
      checkWire(report, 'to the server', toServer(context.schema, world.upstream));
      if (context.verbose) report.note(`the proxy's log:\n${janus.child.tail(200)}`);
    }
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

function drive(context, report, clientName, part, url, world) {
  const mode = context.binary === null ? 'legacy' : 'modern';
  const command = [...CLIENTS[clientName][part](context), url, JSON.stringify(world.target.description), mode];
  return driveClient(report, `${clientName} client (${part})`, command, world);
}

/** Runs a client script to its end: its checks go to the report, its questions are answered. */
export async function driveClient(report, name, [command, ...args], world) {
  const client = new Child(name, command, args, { env: { PYTHONUNBUFFERED: '1' } });
  let checks = 0;
  let turn = Promise.resolve();
  const hear = async (text) => {
    const said = JSON.parse(text);
    if (said.ask !== undefined) {
      const answered = await Promise.resolve()
        .then(() => answer(said, world))
        .catch((error) => report.check(`the runner looks up ${said.ask}`, false, error.stack) || {});
      client.process.stdin.write(`${JSON.stringify(answered)}\n`);
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
  report.check(`the ${name} ran to its end`, code === 0 && checks > 0, `exit code ${code}\n${client.tail()}`);
}
