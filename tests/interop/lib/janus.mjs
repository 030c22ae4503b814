// Owns: building and starting the proxy under test, and knowing when it is ready.
// Does not own: what stands before and behind it (scenarios/).

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Child } from './child.mjs';
import { cache, project } from './paths.mjs';
import { freePort } from './ports.mjs';

const READY_MS = 10_000;
const POLL_MS = 50;

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
 * `shield`: legacy clients' sessions outlive the server's. `settings`: lines of the config, of this upstream; `front`: of the
 * whole process.
 */
export async function startJanus(binary, upstreamUrl, { shield = false, settings = [], front = [] } = {}) {
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const lines = shield ? ['session.shield = true', ...settings] : settings;
  const args = lines.length + front.length > 0 ? ['--config', configFile(upstreamUrl, [`listen.address = "${address}"`, ...front], lines)] : ['--upstream', upstreamUrl, '--listen', address];
  const child = new Child('mcp-janus', binary, ['serve', ...args]);
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
  return { child, port };
}

function configFile(url, front, lines) {
  const file = join(mkdtempSync(join(cache, 'config-')), 'janus.toml');
  writeFileSync(file, `${[...front, '[upstream.default]', `url = "${url}"`, ...lines].join('\n')}\n`);
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
