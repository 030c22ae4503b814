// Owns: building and starting the proxy under test, knowing when it is ready, the command by which a host starts it, and what its
// `probe` says of a server.
// Does not own: what stands before and behind it (scenarios/).

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Child } from './child.mjs';
import { cache, project } from './paths.mjs';
import { freePort } from './ports.mjs';

const READY_MS = 10_000;
const POLL_MS = 50;
const PROBE_MS = 60_000;

/** The release binary: the one that was named, or the one that cargo builds now. */
export function releaseBinary(named) {
  if (named !== undefined) {
    if (!existsSync(named)) throw new Error(`--binary ${named}: there is no such file`);
    return named;
  }
  const build = spawnSync('cargo', ['build', '--release', '--quiet'], { cwd: project, stdio: 'inherit' });
  if (build.status !== 0) throw new Error('cargo build --release failed');
  const target = process.env.CARGO_TARGET_DIR ?? join(project, 'target');
  return join(target, 'release/mcp-janus');
}

/**
 * `upstream`: a URL, or the command of a stdio server as {command: [program, ...args]}. `shield`: legacy clients' sessions outlive
 * the server's. `settings`: lines of the config, of this upstream; `front`: of the whole process.
 */
export async function startJanus(binary, upstream, { shield = false, settings = [], front = [], env = {} } = {}) {
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const lines = shield ? ['session.shield = true', ...settings] : settings;
  const listen = ['--listen', address];
  const plain = lines.length + front.length === 0;
  const args = plain ? [...listen, ...targetArgs(upstream)] : ['--config', configFile(upstream, [`listen.address = "${address}"`, ...front], lines)];
  const child = new Child('mcp-janus', binary, ['serve', ...args], { env });
  await ready(child, port);
  return { child, port };
}

/** Several stdio servers, each at /name/mcp, from the file that hosts have for theirs. */
export async function startJanusOfHost(binary, servers) {
  const port = await freePort();
  const child = new Child('mcp-janus', binary, ['serve', '--listen', `127.0.0.1:${port}`, '--mcp-servers', serversFile(servers)]);
  await ready(child, port);
  return { child, port };
}

async function ready(child, port) {
  const deadline = Date.now() + READY_MS;
  let over = false;
  child.ended.then(() => {
    over = true;
  });
  while (!(await answersReady(port))) {
    if (over) throw new Error(`mcp-janus ended before it was ready:\n${child.tail()}`);
    if (Date.now() > deadline) {
      await child.stop();
      throw new Error(`mcp-janus was not ready within ${READY_MS} ms:\n${child.tail()}`);
    }
    // There is no event to wait for: readiness is only told to who asks.
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/**
 * The command by which a host starts the proxy as a stdio server. `by`: where the upstream is named, on the command line
 * (`flags`), in a `config`, or in the file of a host's `servers`.
 */
export function hostCommand(binary, upstream, { by = 'flags', settings = [] } = {}) {
  const fromConfig = by === 'config' || settings.length > 0;
  if (fromConfig) return [binary, 'stdio', '--config', configFile(upstream, [], settings)];
  if (by === 'flags') return [binary, 'stdio', ...targetArgs(upstream)];
  return [binary, 'stdio', '--mcp-servers', serversFile({ other: { command: 'false' }, chosen: upstream }), '--server', 'chosen'];
}

/** What `probe --json` says of a server: its exit code, and its report, or null where that is no JSON. */
export async function probe(binary, upstream, flags = []) {
  const { code, said, child } = await probed(binary, upstream, ['--json', ...flags]);
  try {
    return { code, report: JSON.parse(said) };
  } catch {
    return { code, report: null, said: child.tail() };
  }
}

/** What `probe` prints for people. */
export async function probeForPeople(binary, upstream) {
  return (await probed(binary, upstream, [])).said;
}

async function probed(binary, upstream, flags) {
  const target = typeof upstream === 'string' ? [upstream] : ['--', ...upstream.command];
  const child = new Child('mcp-janus probe', binary, ['probe', ...flags, ...target]);
  const code = await child.exitWithin(PROBE_MS);
  return { code, child, said: child.lines.filter(({ stream }) => stream === 'stdout').map(({ text }) => text).join('\n') };
}

function targetArgs(upstream) {
  return typeof upstream === 'string' ? ['--upstream', upstream] : ['--', ...upstream.command];
}

function configFile(upstream, front, lines) {
  const file = join(mkdtempSync(join(cache, 'config-')), 'janus.toml');
  // The strings of JSON are strings of TOML too.
  const started = ([command, ...args]) => [`command = ${JSON.stringify(command)}`, `args = ${JSON.stringify(args)}`];
  const target = typeof upstream === 'string' ? [`url = "${upstream}"`] : started(upstream.command);
  writeFileSync(file, `${[...front, '[upstream.default]', ...target, ...lines].join('\n')}\n`);
  return file;
}

/** The common file of hosts: a name for each server, with its URL or its command. */
function serversFile(servers) {
  const file = join(mkdtempSync(join(cache, 'config-')), 'servers.json');
  const entry = (upstream) => {
    if (typeof upstream === 'string') return { url: upstream };
    const [command, ...args] = [upstream.command].flat();
    return { command, args };
  };
  const mcpServers = Object.fromEntries(Object.entries(servers).map(([name, upstream]) => [name, entry(upstream)]));
  writeFileSync(file, JSON.stringify({ mcpServers }));
  return file;
}

async function answersReady(port) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2000) });
    return response.status === 200;
  } catch {
    return false;
  }
}
