// Owns: finding the programs that a run needs, and saying what to install where one is missing.
// Does not own: installing packages (install.mjs).

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { nodeModules } from './paths.mjs';

/** What must be there before anything is installed. Gives the missing things as sentences. */
export function missingPrograms() {
  const missing = [];
  if (majorOf(process.versions.node) < 18) missing.push(`Node 18 or newer is needed, this is ${process.versions.node}`);
  if (!works('npm', ['--version'])) missing.push('npm is needed: install the package "npm"');
  if (!works('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))'])) {
    missing.push('Python 3.10 or newer is needed: install the package "python3"');
  } else if (!works('python3', ['-c', 'import venv, ensurepip'])) {
    missing.push('Python\'s venv is needed: install the package "python3-venv"');
  }
  return missing;
}

/** A Node that the conformance suite runs on: this one, or the one that the pinned package brings for this machine. */
export function modernNode() {
  if (majorOf(process.versions.node) >= 22) return process.execPath;
  const brought = join(nodeModules, `node-${process.platform}-${process.arch}`, 'bin/node');
  if (existsSync(brought) && works(brought, ['--version'])) return brought;
  throw new Error('the conformance suite needs Node 22 or newer, and no pinned package brings one for this machine: install Node 22');
}

function majorOf(version) {
  return Number(version.split('.')[0]);
}

function works(command, args) {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;
}
