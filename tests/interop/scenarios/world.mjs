// Owns: what a run of an official client needs around it: the server, the proxy, a recorder on each leg, how to restart what
// may be restarted, and where the client finds it all. Either leg may be Streamable HTTP (`http`), the old HTTP+SSE (`sse`)
// or a pipe (`stdio`): the proxy starts the server, or the client starts the proxy.
// Does not own: the servers (targets.mjs), the checks (clients/), what a client asks the runner (answers.mjs).

import { hostCommand, startJanus } from '../lib/janus.mjs';
import { PipeTap } from '../lib/pipe-tap.mjs';
import { freePort } from '../lib/ports.mjs';
import { Tap } from '../lib/tap.mjs';

export const OVER_HTTP = { front: 'http', upstream: 'http' };

/** In the proxy's environment, and in no server's. */
const SECRET = 'INTEROP_SECRET';

/**
 * `ways`: {front, upstream}, and `by`, how a host names the upstream (lib/janus.mjs). `serves`: for servers that are told whom
 * to serve. `settings`: of the proxy's upstream. Without a binary the client goes to the server itself, and there is no front.
 */
export async function begin(context, target, { ways = OVER_HTTP, serves, settings = [], shield = false } = {}) {
  const world = { target, ways, settings, shield, open: [], outputs: [], restartedAt: 0, proxies: [] };
  world.close = async () => {
    for (const stop of world.open.splice(0).reverse()) await stop();
  };
  try {
    await addServer(context, world, serves);
    if (context.binary === null) world.where = whereOf(world, world.upstream, ways.upstream);
    else Object.assign(world, await addFront(context, world));
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}

async function addServer(context, world, serves) {
  const { target, ways, open } = world;
  if (ways.upstream === 'stdio') {
    const pipes = PipeTap.start(context.node);
    open.push(() => pipes.stop());
    Object.assign(world, { upstream: pipes, server: pipes, proxied: { command: pipes.command(target.command(context, serves)) } });
    world.outputs.push(pipes.lines);
    world.restart = async () => {
      world.restartedAt = pipes.exchanges.length;
      await pipes.kill();
    };
    return;
  }
  const port = await freePort();
  const start = ways.upstream === 'sse' ? target.startSse : target.start;
  const begun = async () => {
    world.server = await start(context, port, serves);
    world.outputs.push(world.server.lines);
  };
  await begun();
  open.push(() => world.server.stop());
  world.restart = async () => {
    await world.server.stop('SIGKILL');
    world.restartedAt = world.upstream.exchanges.length;
    await begun();
  };
  world.upstream = await Tap.start({ targetPort: port });
  open.push(() => world.upstream.stop());
  world.proxied = ways.upstream === 'sse' ? world.upstream.sseUrl : world.upstream.url;
}

/** Puts a proxy before the server, with a recorder of its own: gives the recorder, and where the client finds it. */
export async function addFront(context, world, settings = world.settings) {
  const { ways, open, shield } = world;
  const { binary } = context;
  if (ways.front === 'stdio') {
    const front = PipeTap.start(context.node);
    open.push(() => front.stop());
    return { front, where: JSON.stringify({ command: front.command(hostCommand(binary, world.proxied, { by: ways.by, settings })) }) };
  }
  const lines = ways.front === 'sse' ? ['sse_path = "/sse"', ...settings] : settings;
  const proxy = async () => {
    const janus = await startJanus(binary, world.proxied, { settings: lines, shield, env: { [SECRET]: 'secret' } });
    world.proxies.push(janus.child);
    return janus;
  };
  let janus = await proxy();
  world.janus ??= janus.child;
  open.push(() => janus.child.stop());
  const front = await Tap.start({ targetPort: janus.port });
  open.push(() => front.stop());
  world.restartProxy ??= async () => {
    const started = ways.upstream === 'stdio' ? [...world.upstream.exchanges] : [];
    await janus.child.stop('SIGKILL');
    world.upstream.epoch += 1;
    // At once: the SDKs look for it twice, a second apart.
    janus = await proxy();
    world.janus = janus.child;
    front.targetPort = janus.port;
    world.left = started.length === 0 ? [] : await world.upstream.gone(started);
  };
  return { front, where: whereOf(world, front, ways.front) };
}

/** For the client's command line: a URL of Streamable HTTP, or JSON. */
function whereOf({ proxied }, leg, way) {
  if (way === 'stdio') return JSON.stringify(proxied);
  return way === 'sse' ? JSON.stringify({ sse: leg.sseUrl }) : leg.url;
}

/** What is right of every run whose servers the proxy has started: they see little of its environment, and end with it. */
export async function checkPrograms(report, { upstream, front, proxies }) {
  if (upstream.kind !== 'pipe' || front === undefined) return;
  for (const proxy of proxies) await proxy.stop();
  const left = await upstream.gone();
  const count = upstream.exchanges.length;
  report.check(`${count} servers were started, and ended with the proxy`, count > 0 && left.length === 0, left.map(({ session }) => session).join(', '));
  const seen = upstream.exchanges.flatMap(({ env }) => env);
  report.check('the servers see the usual variables, and none of the proxy\'s own', seen.includes('PATH') && !seen.includes(SECRET), [...new Set(seen)].join(', '));
}
