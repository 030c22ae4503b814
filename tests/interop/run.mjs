// Owns: the command line of the interop run, the order of its parts, and its exit code.
// Does not own: what a part does (scenarios/), or how packages and programs are found (lib/).

import { parseArgs } from 'node:util';

import { install } from './lib/install.mjs';
import { killAllStarted } from './lib/child.mjs';
import { releaseBinary } from './lib/janus.mjs';
import * as paths from './lib/paths.mjs';
import { missingPrograms, modernNode } from './lib/prerequisites.mjs';
import { Report } from './lib/report.mjs';
import { EVERYTHING_ASKS, MODERN_ASKS, PYTHON_ASKS, TYPESCRIPT_ASKS } from './scenarios/asked.mjs';
import { modern, pymodern, runBridged, runDual } from './scenarios/bridged.mjs';
import { FIXTURES, runConformance } from './scenarios/conformance.mjs';
import { runConformanceClient } from './scenarios/conformance-client.mjs';
import { runLegacyClient } from './scenarios/legacy-clients.mjs';
import { runQuestions } from './scenarios/questions.mjs';
import { runSdkClient } from './scenarios/sdk-clients.mjs';
import { everything, filesystem, modernFixture, modernOf, pythonLegacy, typescriptLegacy } from './scenarios/targets.mjs';
import { createWireSchema } from './lib/wire-schema.mjs';

const PARTS = {
  'typescript-everything': (context, report) => runSdkClient(context, report, 'typescript', everything),
  'python-everything': (context, report) => runSdkClient(context, report, 'python', everything),
  'typescript-python': (context, report) => runSdkClient(context, report, 'typescript', pythonLegacy),
  'python-python': (context, report) => runSdkClient(context, report, 'python', pythonLegacy),
  'typescript-modern': (context, report) => runSdkClient(context, report, 'typescript', modernFixture),
  'python-modern': (context, report) => runSdkClient(context, report, 'python', modernFixture),
  ...questionParts(),
  ...legacyClientParts(),
  ...bridgedParts(),
  ...programParts(),
  'modern-to-legacy': (context, report) => runConformance(context, report, 'modern-to-legacy', FIXTURES.legacy),
  'modern-to-modern': (context, report) => runConformance(context, report, 'modern-to-modern', FIXTURES.modern),
  'legacy-to-legacy': (context, report) => runConformance(context, report, 'legacy-to-legacy', FIXTURES.legacy),
  'legacy-to-legacy-shielded': (context, report) => runConformance(context, report, 'legacy-to-legacy-shielded', FIXTURES.legacy),
  'legacy-to-modern': (context, report) => runConformance(context, report, 'legacy-to-modern', FIXTURES.modern),
  ...conformanceClientParts({
    'conformance-client-modern': { client: 'modern', revision: '2026-07-28' },
    'conformance-client-legacy': { client: 'legacy', revision: '2025-11-25' },
    'conformance-client-modern-to-legacy': { client: 'modern', revision: '2025-11-25' },
    // These servers judge each request that they get, also the one by which the proxy would find out whether they know more.
    'conformance-client-legacy-to-modern': { client: 'legacy', revision: '2026-07-28', era: 'modern' },
  }),
};

/** Each modern client before each legacy server, to answer what it asks. */
function questionParts() {
  const parts = {};
  for (const client of ['typescript', 'python']) {
    parts[`questions-${client}-everything`] = (context, report) => runQuestions(context, report, client, everything, EVERYTHING_ASKS);
    parts[`questions-${client}-python`] = (context, report) => runQuestions(context, report, client, pythonLegacy, PYTHON_ASKS);
    parts[`questions-${client}-typescript`] = (context, report) => runQuestions(context, report, client, typescriptLegacy, TYPESCRIPT_ASKS);
  }
  return parts;
}

/** Each legacy client before each legacy server, with and without the shield. */
function legacyClientParts() {
  const parts = {};
  for (const client of ['typescript', 'python']) {
    for (const [server, target] of Object.entries({ everything, python: pythonLegacy })) {
      parts[`legacy-${client}-${server}`] = (context, report) => runLegacyClient(context, report, client, target);
      parts[`legacy-${client}-${server}-shielded`] = (context, report) => runLegacyClient(context, report, client, target, { shield: true });
    }
  }
  return parts;
}

/** Each legacy client before each modern server, and before the same servers where they serve both eras. */
function bridgedParts() {
  const parts = {
    'legacy-typescript-dual': (context, report) => runDual(context, report, modern),
    'legacy-typescript-pydual': (context, report) => runDual(context, report, pymodern),
  };
  for (const client of ['typescript', 'python']) {
    for (const [server, target] of Object.entries({ modern, pymodern })) {
      parts[`legacy-${client}-${server}`] = (context, report) => runBridged(context, report, client, target);
    }
  }
  return parts;
}

/** Clients of both eras before servers that the proxy starts. */
function programParts() {
  const ways = { front: 'http', upstream: 'stdio' };
  const parts = {
    'filesystem-stdio': async (context, report) => {
      for (const client of ['typescript', 'python']) {
        await runSdkClient(context, report, client, filesystem(context), { ways });
        await runLegacyClient(context, report, client, filesystem(context), { ways });
      }
    },
  };
  for (const client of ['typescript', 'python']) {
    for (const [server, target] of Object.entries({ everything, python: pythonLegacy, modern: modernOf(modern), pymodern: modernOf(pymodern) })) {
      parts[`${client}-${server}-stdio`] = (context, report) => runSdkClient(context, report, client, target, { ways });
    }
    for (const [server, [target, asks]] of Object.entries({ everything: [everything, EVERYTHING_ASKS], python: [pythonLegacy, PYTHON_ASKS], typescript: [typescriptLegacy, TYPESCRIPT_ASKS], modern: [modern, MODERN_ASKS], pymodern: [pymodern, MODERN_ASKS] })) {
      parts[`questions-${client}-${server}-stdio`] = (context, report) => runQuestions(context, report, client, target, asks, { ways });
    }
    for (const [server, target] of Object.entries({ everything, python: pythonLegacy })) {
      parts[`legacy-${client}-${server}-stdio`] = (context, report) => runLegacyClient(context, report, client, target, { ways });
    }
    for (const [server, target] of Object.entries({ modern, pymodern })) {
      parts[`legacy-${client}-${server}-stdio`] = (context, report) => runBridged(context, report, client, target, { ways });
    }
  }
  return parts;
}

function conformanceClientParts(parts) {
  const run = ([name, what]) => [name, (context, report) => runConformanceClient(context, report, name, what)];
  return Object.fromEntries(Object.entries(parts).map(run));
}

/**
 * A legacy server does not pass the modern suite by itself; that is what the proxy is for. Listening ends with its drain. The
 * Python SDK 2.x does not put the questions of its modern tools to legacy clients.
 */
const NOT_DIRECTLY = [
  'modern-to-legacy',
  'typescript-modern',
  'python-modern',
  'conformance-client-modern-to-legacy',
  'conformance-client-legacy-to-modern',
  'legacy-typescript-pymodern',
  'legacy-python-pymodern',
  'legacy-typescript-dual',
  'legacy-typescript-pydual',
];

const HELP = `usage: node tests/interop/run.mjs [options]

  --binary FILE   take this mcp-janus instead of building the release binary
  --direct        run against the fixtures without the proxy, to check the harness itself
  --only PARTS    run these parts only, separated by commas: ${Object.keys(PARTS).join(', ')}
  --install-only  bring in the pinned packages and stop
  --verbose       show warnings of the conformance suite and the proxy's log`;

async function main() {
  const { values } = parseArgs({
    options: {
      binary: { type: 'string' },
      direct: { type: 'boolean' },
      only: { type: 'string' },
      'install-only': { type: 'boolean' },
      verbose: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const chosen = values.only?.split(',') ?? Object.keys(PARTS);
  const unknown = chosen.filter((part) => !(part in PARTS));
  if (unknown.length > 0) throw new Error(`--only ${unknown.join(',')}: the parts are ${Object.keys(PARTS).join(', ')}`);
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
    if (values.direct && (NOT_DIRECTLY.includes(part) || part.endsWith('-shielded'))) report.note(`${part}: has no direct form`);
    else await PARTS[part](context, report);
  }
  return report.close();
}

process.once('exit', killAllStarted);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

process.exit(
  await main().catch((error) => {
    console.error(`interop: ${error.message}`);
    return 1;
  }),
);
