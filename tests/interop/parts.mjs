// Owns: the parts of a run, by name: which client meets which server, and in what ways they are connected.
// Does not own: what a part does (scenarios/), or which parts are run (run.mjs).
//
// `-stdio` and `-sse` at the end of a name say how the server is reached by the proxy; `host-` in front of it that the client
// starts the proxy, `sse-` that it comes over the old HTTP+SSE. Everything else is Streamable HTTP.

import { EVERYTHING_ASKS, MODERN_ASKS, PYTHON_ASKS, TYPESCRIPT_ASKS } from './scenarios/asked.mjs';
import { modern, pymodern, runBridged, runDual } from './scenarios/bridged.mjs';
import { FIXTURES, runConformance } from './scenarios/conformance.mjs';
import { runConformanceClient } from './scenarios/conformance-client.mjs';
import { runKilledHost, runKilledProxy, runKilledServers } from './scenarios/kills.mjs';
import { runLegacyClient } from './scenarios/legacy-clients.mjs';
import { runMcpServers } from './scenarios/mcp-servers.mjs';
import { runQuestions } from './scenarios/questions.mjs';
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

const http = { front: 'http', upstream: 'http' };
/** Servers that the proxy starts, and those of the old HTTP+SSE. */
const program = { front: 'http', upstream: 'stdio' };
const old = { front: 'http', upstream: 'sse' };
/** Clients that start the proxy, and name the server in one way or another. */
const host = (upstream, by) => ({ front: 'stdio', upstream, by });
/** Clients of the old HTTP+SSE. */
const oldClient = (upstream) => ({ front: 'sse', upstream });

const both = (make) => CLIENTS.flatMap(make);

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
  ...conformanceParts(),
]);

/** Clients of both eras before servers that the proxy starts. */
function programParts() {
  return [
    ...both((client) => Object.keys(SERVERS.calls).map((server) => PART.calls(client, server, program))),
    ...both((client) => Object.keys(SERVERS.asks).map((server) => PART.asks(client, server, program))),
    ...both((client) => [PART.legacy(client, 'everything', program), PART.legacy(client, 'python', program), PART.legacy(client, 'python', program, true)]),
    ...both((client) => Object.keys(SERVERS.bridged).map((server) => PART.bridged(client, server, program))),
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
  return [
    ...both((client) => [
      PART.calls(client, 'everything', host('http', 'flags')),
      PART.calls(client, 'python', host('stdio', 'flags')),
      PART.calls(client, 'pymodern', host('http', 'servers')),
      PART.calls(client, 'modern', host('stdio', 'servers')),
      PART.asks(client, 'python', host('http')),
      PART.asks(client, 'everything', host('stdio')),
      PART.asks(client, 'modern', host('http')),
      PART.asks(client, 'pymodern', host('stdio')),
      PART.legacy(client, 'everything', host('stdio', 'flags')),
      PART.legacy(client, 'python', host('http', 'servers')),
      PART.bridged(client, 'modern', host('http')),
      PART.bridged(client, 'pymodern', host('stdio')),
    ]),
  ];
}

/** The old HTTP+SSE on either side. */
function oldParts() {
  return [
    ...both((client) => [
      PART.calls(client, 'everything', old),
      PART.asks(client, 'everything', old),
      PART.legacy(client, 'everything', old),
      PART.legacy(client, 'python', oldClient('http')),
      PART.legacy(client, 'everything', oldClient('stdio')),
    ]),
    PART.legacy('typescript', 'everything', oldClient('sse')),
    PART.bridged('typescript', 'modern', oldClient('http')),
    PART.bridged('python', 'modern', oldClient('stdio')),
  ];
}

function killParts() {
  const targets = { legacy: everything, modern: modernOf(modern) };
  const parts = [];
  for (const era of ['modern', 'legacy']) {
    parts.push([
      `kill-under-${era}`,
      async (context, report) => {
        for (const target of Object.values(targets)) {
          await runKilledServers(context, report, era, target, program);
          await runKilledServers(context, report, era, target, host('stdio', 'flags'));
          await runKilledProxy(context, report, era, target, program);
          await runKilledProxy(context, report, era, target, host('stdio', 'flags'));
          await runKilledHost(context, report, era, target);
        }
      },
    ]);
  }
  return parts;
}

function conformanceParts() {
  const client = (name, what) => [name, (context, report) => runConformanceClient(context, report, name, what)];
  return [
    ...Object.entries({
      'modern-to-legacy': FIXTURES.legacy,
      'modern-to-modern': FIXTURES.modern,
      'legacy-to-legacy': FIXTURES.legacy,
      'legacy-to-legacy-shielded': FIXTURES.legacy,
      'legacy-to-modern': FIXTURES.modern,
    }).map(([name, fixture]) => [name, (context, report) => runConformance(context, report, name, fixture)]),
    client('conformance-client-modern', { client: 'modern', revision: '2026-07-28' }),
    client('conformance-client-legacy', { client: 'legacy', revision: '2025-11-25' }),
    client('conformance-client-modern-to-legacy', { client: 'modern', revision: '2025-11-25' }),
    // These servers judge each request that they get, also the one by which the proxy would find out whether they know more.
    client('conformance-client-legacy-to-modern', { client: 'legacy', revision: '2026-07-28', era: 'modern' }),
  ];
}

/**
 * What has no direct form. A legacy server does not pass the modern suite by itself; that is what the proxy is for. Listening over
 * HTTP ends with its drain. The Python SDK 2.x does not put the questions of its modern tools to legacy clients. Directly, a
 * client has no other ways to a server than the server has.
 */
export function isDirectly(part) {
  const never = [/-shielded$/, /^host-/, /^sse-/, /^kill-/, /^mcp-servers$/, /dual/, /^legacy-.*-pymodern/, /^(typescript|python)-modern$/];
  const not = ['modern-to-legacy', 'conformance-client-modern-to-legacy', 'conformance-client-legacy-to-modern'];
  return !not.includes(part) && !never.some((pattern) => pattern.test(part));
}
