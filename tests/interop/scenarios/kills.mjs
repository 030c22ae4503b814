// Owns: what is left when programs are killed (SIGKILL) in the middle of calls: the servers that the proxy has started, the
// proxy, the host that has started it.
// Does not own: what the clients see of it (clients/kills-client.mjs), what it asks the runner (answers-kills.mjs), or the servers
// (targets.mjs).

import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { driveClient } from './sdk-clients.mjs';
import { described } from './targets.mjs';
import { begin } from './world.mjs';

const BEGUN_MS = 15_000;

/** A server is killed under clients of both eras, behind HTTP and behind a host's proxy. */
export async function runKilledServers(context, report, era, target, ways) {
  report.section(`kill -9: ${target.name} under a ${era} client, ${ways.front === 'stdio' ? 'which has started the proxy' : 'over HTTP'}`);
  await inWorld(context, report, target, ways, async (world) => {
    await driveClient(report, `${era} client (kills)`, clientOf(context, world, era, 'servers'), world);
    const left = await world.upstream.gone(world.upstream.exchanges.filter(({ over }) => over));
    report.check('every killed program was buried', left.length === 0, names(left));
  });
}

/** The proxy is killed, and with it goes what it has started; a client that had calls there hears of it. */
export async function runKilledProxy(context, report, era, target, ways) {
  report.section(`kill -9: the proxy between a ${era} client and ${target.name}, ${ways.front === 'stdio' ? 'as a stdio server' : 'over HTTP'}`);
  await inWorld(context, report, target, ways, async (world) => {
    const client = await staying(context, world, era);
    if (ways.front === 'stdio') for (const { program } of world.front.alive) process.kill(program, 'SIGKILL');
    else await world.janus.stop('SIGKILL');
    const left = await world.upstream.gone(world.upstream.exchanges, { direct: true });
    report.check('nothing that it had started is left', world.upstream.exchanges.length > 0 && left.length === 0, names(left));
    await client.stop('SIGKILL');
  });
}

/** The host is killed, and with it go the proxy that it has started and the server behind that. */
export async function runKilledHost(context, report, era, target) {
  report.section(`kill -9: a ${era} host in front of ${target.name} over stdio`);
  await inWorld(context, report, target, { front: 'stdio', upstream: 'stdio' }, async (world) => {
    const host = await staying(context, world, era);
    await host.stop('SIGKILL');
    for (const [what, leg] of [['proxy', world.front], ['server', world.upstream]]) {
      const left = await leg.gone();
      report.check(`the ${what} ends with the host`, leg.exchanges.length > 0 && left.length === 0, names(left));
    }
  });
}

async function inWorld(context, report, target, ways, body) {
  let world = null;
  try {
    world = await begin(context, target, { ways });
    await body(world);
    if (context.verbose) world.proxies.forEach((proxy) => report.note(`the proxy's log:\n${proxy.tail(200)}`));
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await world?.close();
  }
}

function clientOf(context, world, era, role) {
  return [context.node, join(context.here, 'clients/kills-client.mjs'), world.where, JSON.stringify(described(world, context)), era, role];
}

/** A client whose calls have come to the server, and that waits for them. */
async function staying(context, world, era) {
  const [command, ...args] = clientOf(context, world, era, 'stay');
  const client = new Child(`${era} client`, command, args);
  world.open.push(() => client.stop('SIGKILL'));
  const { slow } = world.target.description;
  const begun = ({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params.name === slow.name;
  if ((await world.upstream.entries.waitFor(begun, BEGUN_MS)) === null) throw new Error(`no call came to the server:\n${client.tail()}`);
  return client;
}

const names = (pipes) => pipes.map(({ session, program }) => `${session} (${program})`).join(', ');
