// Owns: the command line of the interop run, and its exit code.
// Does not own: the parts and their order (parts.mjs), what a part does (scenarios/), or how packages and programs are found (lib/).

import { parseArgs } from 'node:util';

import { install } from './lib/install.mjs';
import { killAllStarted } from './lib/child.mjs';
import { releaseBinary } from './lib/janus.mjs';
import * as paths from './lib/paths.mjs';
import { missingPrograms, modernNode } from './lib/prerequisites.mjs';
import { Report } from './lib/report.mjs';
import { createWireSchema } from './lib/wire-schema.mjs';
import { isDirectly, PARTS } from './parts.mjs';

const names = Object.keys(PARTS);
const listed = (more) => names.filter((part) => (PARTS[part].more ?? false) === more).join(', ');

const HELP = `usage: node tests/interop/run.mjs [options]

  --binary FILE   take this mcp-janus instead of building the release binary
  --direct        run against the fixtures without the proxy, to check the harness itself
  --only PARTS    run these parts only, separated by commas; * stands for anything
  --all           run the further parts too
  --install-only  bring in the pinned packages and stop
  --verbose       show warnings of the conformance suite and the proxy's log

parts: ${listed(false)}

further parts, the same clients before the other servers: ${listed(true)}`;

async function main() {
  const { values } = parseArgs({
    options: {
      binary: { type: 'string' },
      direct: { type: 'boolean' },
      only: { type: 'string' },
      all: { type: 'boolean' },
      'install-only': { type: 'boolean' },
      verbose: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const chosen = values.only === undefined ? names.filter((part) => values.all || !PARTS[part].more) : partsLike(values.only.split(','));
  const missing = missingPrograms();
  if (missing.length > 0) throw new Error(missing.join('\n'));

  install();
  if (values['install-only']) return 0;
  const context = {
    ...paths,
    node: modernNode(),
    binary: values.direct ? null : releaseBinary(values.binary),
    schema: createWireSchema(paths.nodeModules),
    verbose: values.verbose ?? false,
  };
  const report = new Report();
  for (const part of chosen) {
    if (values.direct && !isDirectly(part)) report.note(`${part}: has no direct form`);
    else await PARTS[part](context, report);
  }
  return report.close();
}

/** The parts of these names, in which * stands for anything. */
function partsLike(patterns) {
  const like = (pattern) => names.filter((part) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(part));
  const unknown = patterns.filter((pattern) => like(pattern).length === 0);
  if (unknown.length > 0) throw new Error(`--only ${unknown.join(',')}: the parts are ${names.join(', ')}`);
  const asked = patterns.flatMap(like);
  return names.filter((part) => asked.includes(part));
}

process.once('exit', killAllStarted);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

process.exit(
  await main().catch((error) => {
    console.error(`interop: ${error.message}`);
    return 1;
  }),
);
