// Owns: the parts of a run, by name: which client meets which server, in what ways they are connected, and which of them every
// run has.
// Does not own: what a part does (scenarios/), or which parts are asked for (run.mjs).
//
// `-stdio` and `-sse` at the end of a name say how the server is reached by the proxy; `host-` in front of it that the client
// starts the proxy, `sse-` that it comes over the old HTTP+SSE. Everything else is Streamable HTTP.

import { EVERYTHING_ASKS, MODERN_ASKS, PYTHON_ASKS, TYPESCRIPT_ASKS } from './scenarios/asked.mjs';
import { modern, pymodern, runBridged, runDual } from './scenarios/bridged.mjs';
import { FIXTURES, runConformance } from './scenarios/conformance.mjs';
import { runConformanceClient, SCHEMA_SCENARIOS } from './scenarios/conformance-client.mjs';
import { runKilledHost, runKilledProxy, runKilledServers } from './scenarios/kills.mjs';
import { runLegacyClient } from './scenarios/legacy-clients.mjs';
import { runMcpServers } from './scenarios/mcp-servers.mjs';
import { runQuestions } from './scenarios/questions.mjs';
import { runSchemaFindings } from './scenarios/schema-findings.mjs';
import { runSchemaServers } from './scenarios/schema-servers.mjs';
import { runSchemaSuite } from './scenarios/schema-suite.mjs';
import { runSdkClient } from './scenarios/sdk-clients.mjs';
import { everything, filesystem, modernFixture, modernOf, pythonLegacy, typescriptLegacy } from './scenarios/targets.mjs';

const CLIENTS = ['typescript', 'python'];
const OVER = { http: '', sse: '-sse', stdio: '-stdio' };
const FROM = { http: '', sse: 'sse-', stdio: 'host-' };

/** The servers by name, for each kind of run; what modern ones ask of modern clients they ask by themselves. */
const SERVERS = {
  calls: { everything, python: pythonLegacy, modern: modernOf(modern), pymodern: modernOf(pymodern) },
  legacy: { everything, python: pythonLegacy },
  bridged: { modern, pymodern },
  asks: {
    everything: [everything, EVERYTHING_ASKS],
    python: [pythonLegacy, PYTHON_ASKS],
    typescript: [typescriptLegacy, TYPESCRIPT_ASKS],
    modern: [modern, MODERN_ASKS],
    pymodern: [pymodern, MODERN_ASKS],
  },
};

/** A part of each kind: its name, and how it is run. `ways`: {front, upstream, by}. */
const PART = {
  calls: (client, server, ways) => [named(`${client}-${server}`, ways), (context, report) => runSdkClient(context, report, client, SERVERS.calls[server], { ways })],
  asks: (client, server, ways) => [named(`questions-${client}-${server}`, ways), (context, report) => runQuestions(context, report, client, ...SERVERS.asks[server], { ways })],
  legacy: (client, server, ways, shield = false) => [
    `${named(`legacy-${client}-${server}`, ways)}${shield ? '-shielded' : ''}`,
    (context, report) => runLegacyClient(context, report, client, SERVERS.legacy[server], { ways, shield }),
  ],
  bridged: (client, server, ways) => [named(`legacy-${client}-${server}`, ways), (context, report) => runBridged(context, report, client, SERVERS.bridged[server], { ways })],
};

function named(name, { front, upstream }) {
  return `${FROM[front]}${name}${OVER[upstream]}`;
}

/** Both clients before the same servers. */
const both = (make) => CLIENTS.flatMap(make);
/** Each of the two clients before a half of the servers, and in a run of all before the other half too. */
const halves = (make, first, second) => [...first.map((server) => make('typescript', server)), ...second.map((server) => make('python', server)), ...rest(make, first, second)];
const rest = (make, first, second) => [...second.map((server) => make('typescript', server)), ...first.map((server) => make('python', server))].map(more);
const more = ([name, run]) => [name, Object.assign((...args) => run(...args), { more: true })];

const http = { front: 'http', upstream: 'http' };
/** Servers that the proxy starts, and those of the old HTTP+SSE. */
const program = { front: 'http', upstream: 'stdio' };
const old = { front: 'http', upstream: 'sse' };
/** Clients that start the proxy, and name the server in one way or another. */
const host = (upstream, by) => ({ front: 'stdio', upstream, by });
/** Clients of the old HTTP+SSE. */
const oldClient = (upstream) => ({ front: 'sse', upstream });

/** Name -> how it is run; `more` on it says that only a run of all has it. */
export const PARTS = Object.fromEntries([
  ...both((client) => ['everything', 'python'].map((server) => PART.calls(client, server, http))),
  ...both((client) => [[`${client}-modern`, (context, report) => runSdkClient(context, report, client, modernFixture)]]),
  ...both((client) => ['everything', 'python', 'typescript'].map((server) => PART.asks(client, server, http))),
  ...both((client) => ['everything', 'python'].flatMap((server) => [PART.legacy(client, server, http), PART.legacy(client, server, http, true)])),
  ['legacy-typescript-dual', (context, report) => runDual(context, report, modern)],
  ['legacy-typescript-pydual', (context, report) => runDual(context, report, pymodern)],
  ...both((client) => ['modern', 'pymodern'].map((server) => PART.bridged(client, server, http))),
  ...programParts(),
  ...hostParts(),
  ...oldParts(),
  ...killParts(),
  ['schema-suite', runSchemaSuite],
  ['schema-findings', runSchemaFindings],
  ['schema-servers', runSchemaServers],
  ...conformanceParts(),
]);

/** Clients of both eras before servers that the proxy starts. */
function programParts() {
  const over = (make) => (client, server) => make(client, server, program);
  return [
    ...halves(over(PART.calls), ['everything', 'pymodern'], ['python', 'modern']),
    ...halves(over(PART.asks), ['python', 'modern'], ['everything', 'pymodern']),
    ...both((client) => [more(PART.asks(client, 'typescript', program))]),
    ...halves(over(PART.legacy), ['python'], ['everything']),
    PART.legacy('typescript', 'python', program, true),
    ...halves(over(PART.bridged), ['modern'], ['pymodern']),
    ['legacy-typescript-dual-stdio', (context, report) => runDual(context, report, modern, { ways: program })],
    ['legacy-typescript-pydual-stdio', (context, report) => runDual(context, report, pymodern, { ways: program })],
    [
      'filesystem-stdio',
      async (context, report) => {
        for (const client of CLIENTS) {
          await runSdkClient(context, report, client, filesystem(context), { ways: program });
          await runLegacyClient(context, report, client, filesystem(context), { ways: program });
        }
      },
    ],
    ['mcp-servers', runMcpServers],
  ];
}

/** Clients of both eras that start the proxy, before servers of both eras, over HTTP or started by the proxy in its turn. */
function hostParts() {
  const over = (make, ways) => (client, server) => make(client, server, ways);
  return [
    ...halves(over(PART.calls, host('stdio', 'flags')), ['python'], []),
    ...halves(over(PART.calls, host('http', 'flags')), [], ['everything']),
    ...halves(over(PART.calls, host('http', 'servers')), ['pymodern'], []),
    ...halves(over(PART.calls, host('stdio', 'servers')), [], ['modern']),
    ...halves(over(PART.asks, host('stdio')), ['everything'], ['pymodern']),
    ...halves(over(PART.asks, host('http')), ['modern'], []),
    ...both((client) => [more(PART.asks(client, 'python', host('http')))]),
    ...halves(over(PART.legacy, host('stdio', 'flags')), ['everything'], []),
    ...halves(over(PART.legacy, host('http', 'servers')), [], ['python']),
    ...halves(over(PART.bridged, host('stdio')), [], ['pymodern']),
    ...halves(over(PART.bridged, host('http')), ['modern'], []),
  ];
}

/** The old HTTP+SSE on either side. */
function oldParts() {
  return [
    PART.calls('typescript', 'everything', old),
    more(PART.calls('python', 'everything', old)),
    PART.asks('python', 'everything', old),
    more(PART.asks('typescript', 'everything', old)),
    ...both((client) => [PART.legacy(client, 'everything', old), PART.legacy(client, 'python', oldClient('http')), PART.legacy(client, 'everything', oldClient('stdio'))]),
    PART.legacy('typescript', 'everything', oldClient('sse')),
    PART.bridged('typescript', 'modern', oldClient('http')),
    more(PART.bridged('python', 'modern', oldClient('stdio'))),
  ];
}

/** A server of each era under clients of each. */
function killParts() {
  const part = (era, server, target) => [
    `kill-${server}-under-${era}`,
    async (context, report) => {
      for (const ways of [program, host('stdio', 'flags')]) {
        await runKilledServers(context, report, era, target, ways);
        await runKilledProxy(context, report, era, target, ways);
      }
      await runKilledHost(context, report, era, target);
    },
  ];
  return ['modern', 'legacy'].flatMap((era) => [part(era, 'everything', everything), part(era, 'modern', modernOf(modern))]);
}

function conformanceParts() {
  const client = (name, what) => [name, (context, report) => runConformanceClient(context, report, name, what)];
  const server = (name, fixture) => [name, (context, report) => runConformance(context, report, name, fixture)];
  return [
    server('modern-to-legacy', FIXTURES.legacy),
    server('modern-to-modern', FIXTURES.modern),
    server('legacy-to-legacy', FIXTURES.legacy),
    server('legacy-to-legacy-shielded', FIXTURES.legacy),
    server('legacy-to-modern', FIXTURES.modern),
    client('conformance-client-modern', { client: 'modern', revision: '2026-07-28' }),
    client('conformance-client-legacy', { client: 'legacy', revision: '2025-11-25' }),
    client('conformance-client-modern-to-legacy', { client: 'modern', revision: '2025-11-25' }),
    // These servers judge each request that they get, also the one by which the proxy would find out whether they know more.
    client('conformance-client-legacy-to-modern', { client: 'legacy', revision: '2026-07-28', era: 'modern' }),
    client('conformance-client-modern-warned', { client: 'modern', revision: '2026-07-28', scenarios: SCHEMA_SCENARIOS, policy: 'warn' }),
    client('conformance-client-legacy-to-modern-warned', { client: 'legacy', revision: '2026-07-28', era: 'modern', scenarios: SCHEMA_SCENARIOS, policy: 'warn' }),
  ];
}

/**
 * What has no direct form: a client has no other ways to a server than the server has, no server passes the suite of the other era
 * by itself, listening over HTTP ends with the proxy's drain, the Python SDK 2.x does not put the questions of its modern tools
 * to legacy clients, and nobody but the proxy judges schemas.
 */
const NEVER_DIRECTLY = [/-shielded$/, /^host-/, /^sse-/, /^kill-/, /^mcp-servers$/, /dual/, /^legacy-.*-pymodern/, /^(typescript|python)-modern$/, /^schema-/, /-warned$/];
const NOT_DIRECTLY = ['modern-to-legacy', 'legacy-to-modern', 'conformance-client-modern-to-legacy', 'conformance-client-legacy-to-modern'];

export function isDirectly(part) {
  return !NOT_DIRECTLY.includes(part) && !NEVER_DIRECTLY.some((pattern) => pattern.test(part));
}
