// Owns: where things lie, relative to this folder.
// Does not own: creating them (install.mjs).

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = dirname(dirname(fileURLToPath(import.meta.url)));
export const project = dirname(dirname(here));
export const cache = join(here, '.cache');
export const nodeModules = join(cache, 'node_modules');
export const pythonModern = join(cache, 'python-modern/bin/python');
export const pythonLegacy = join(cache, 'python-legacy/bin/python');
export const pythonServers = join(cache, 'python-servers/bin/python');
/** The official test suite of JSON Schema, as the source package that has it lays it out. */
export const schemaSuite = join(cache, 'schema-suite/json');
