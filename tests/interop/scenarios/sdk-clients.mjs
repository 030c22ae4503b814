// Owns: one run of an official SDK client against a server, through the proxy between two taps or directly.
// Does not own: the client's checks (clients/), the servers (targets.mjs), or what a client asks the runner (answers.mjs).

import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { checkWire, findingsToClient, findingsToLegacyServer, findingsToModernServer } from '../lib/wire-check.mjs';
import { answer } from './answers.mjs';
import { described } from './targets.mjs';
import { begin, checkPrograms, OVER_HTTP } from './world.mjs';

const CLIENT_MS = 120_000;

/** `calls` checks what can be called, `listen` what is heard of changes; the latter ends the proxy. */
const CLIENTS = {
  typescript: ({ node, here }, part) => [node, join(here, { calls: 'clients/modern-client.mjs', listen: 'clients/listen-client.mjs' }[part])],
  python: ({ pythonModern, here }, part) => [pythonModern, join(here, { calls: 'clients/modern_client.py', listen: 'clients/listen_client.py' }[part])],
};

/**
 * `binary` is null for a direct run, in which the client of a legacy server uses the legacy era, that has no
 * `subscriptions/listen`; of a modern server only one that the client starts can be met directly, since listening ends otherwise
 * with the proxy's drain.
 */
export async function runSdkClient(context, report, clientName, target, { ways = OVER_HTTP, parts = target.parts } = {}) {
  const { binary } = context;
  report.section(titleOf(`${clientName} client`, target, ways, binary));
  let world = null;
  try {
    world = await begin(context, target, { ways });
    for (const part of parts) {
      if (binary !== null || target.modern || part === 'calls') await drive(context, report, clientName, part, world);
    }
    if (binary !== null) {
      checkWire(report, 'to the client', findingsToClient(context.schema, world.front, { relayed: target.modern }));
      await checkPrograms(report, world);
      const toServer = target.modern ? findingsToModernServer : findingsToLegacyServer;
      checkWire(report, 'to the server', toServer(context.schema, world.upstream));
      if (context.verbose) world.proxies.forEach((proxy) => report.note(`the proxy's log:\n${proxy.tail(200)}`));
    }
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await world?.close();
  }
}

/** How a run is called: who meets whom, and how they are connected where it is not over Streamable HTTP. */
export function titleOf(client, target, ways, binary, more = '') {
  const [front, upstream] = [ways.front, ways.upstream].map((way) => ({ http: '', sse: ' over HTTP+SSE', stdio: ' over stdio' })[way]);
  return `${client}${binary === null ? '' : front}, ${target.name}${upstream}${binary === null ? ', directly' : more}`;
}

export function clientCommand(context, clientName, part, where, description, mode) {
  return [...CLIENTS[clientName](context, part), where, JSON.stringify(description), mode];
}

function drive(context, report, clientName, part, world) {
  const mode = context.binary === null && !world.target.modern ? 'legacy' : 'modern';
  const command = clientCommand(context, clientName, part, world.where, described(world, context), mode);
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
        .then(() => [world.upstream, world.front, world.hasty].forEach((leg) => leg?.look?.()))
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
