// Owns: bringing the pinned npm and PyPI packages into the ignored cache folder, once per set of pins.
// Does not own: which pins (package.json, package-lock.json, python/*.txt) or the tools that install (prerequisites.mjs).

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { cache, here, nodeModules, pythonLegacy, pythonModern } from './paths.mjs';

const INSTALL_MS = 600_000;

export function install() {
  mkdirSync(cache, { recursive: true });
  const npmPins = ['package.json', 'package-lock.json'];
  once('npm', npmPins, () => {
    for (const file of npmPins) copyFileSync(join(here, file), join(cache, file));
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], cache);
  });
  // The scripts here import packages by name, which Node looks up from the script's own folder.
  const link = join(here, 'node_modules');
  rmSync(link, { force: true });
  symlinkSync(nodeModules, link);
  for (const [name, python] of [['modern', pythonModern], ['legacy', pythonLegacy]]) {
    once(`python-${name}`, [`python/${name}.txt`], () => {
      const folder = dirname(dirname(python));
      rmSync(folder, { recursive: true, force: true });
      run('python3', ['-m', 'venv', folder], here);
      run(python, ['-m', 'pip', 'install', '--quiet', '--no-deps', '-r', join(here, 'python', `${name}.txt`)], here);
    });
  }
}

/** Runs `body` unless the stamp says that it was done with just these pins. */
function once(name, pins, body) {
  const stampFile = join(cache, `${name}.stamp`);
  const digest = createHash('sha256');
  for (const file of pins) digest.update(readFileSync(join(here, file)));
  const stamp = `${digest.digest('hex')}\n`;
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  console.log(`installing: ${name}`);
  body();
  writeFileSync(stampFile, stamp);
}

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit', timeout: INSTALL_MS });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed${error ? `: ${error.message}` : ''}`);
}
