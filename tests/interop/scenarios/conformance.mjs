// Owns: runs of the official conformance suite against a fixture, through the proxy or directly, and the verdict on them.
// Does not own: which failures are known (expected-failures.mjs), or the fixtures (fixtures/).

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { startJanus } from '../lib/janus.mjs';
import { Tap } from '../lib/tap.mjs';
import { findingsToBridgedServer } from '../lib/wire-bridged.mjs';
import { checkWire, findingsToLegacyServer } from '../lib/wire-check.mjs';
import { EXPECTED_FAILURES } from './expected-failures.mjs';

/** What the suite's client speaks. */
const REVISIONS = { 'legacy-to-legacy': '2025-11-25', 'legacy-to-legacy-shielded': '2025-11-25', 'legacy-to-modern': '2025-11-25' };
const LATEST = '2026-07-28';
const START_MS = 20_000;
const SUITE_MS = 180_000;

/** Not required by the frozen set, but what a proxy is there to get right: headers, and schemas left whole. */
const ALSO_REQUIRED = {
  'modern-to-legacy': ['http-header-validation'],
  'modern-to-modern': ['http-header-validation', 'http-custom-header-server-validation', 'json-schema-2020-12'],
  'legacy-to-legacy': ['server-sse-polling', 'server-session-lifecycle'],
  'legacy-to-legacy-shielded': ['server-sse-polling', 'server-session-lifecycle'],
  'legacy-to-modern': ['server-sse-polling', 'server-session-lifecycle', 'json-schema-2020-12'],
};

/** Checks that the suite would also leave out or only warn of, where it could not look. */
const MUST_PASS = {
  'legacy-to-modern': {
    'server-sse-polling': ['server-sse-priming-event', 'server-sse-retry-field', 'server-sse-disconnect-resume'],
    'server-session-lifecycle': ['server-session-delete-accepted', 'server-session-terminated-returns-404'],
    'server-sse-multiple-streams': ['server-accepts-multiple-post-streams'],
  },
};

/** A stream without an answer is closed sooner than `test_reconnection` of the modern fixture has one. */
const SETTINGS = { 'legacy-to-modern': { settings: ['session.poll = "200ms"'], front: ['timeouts.hold = "50ms"'] } };

/** Without the proxy, which checks `Host`, the tap in front gives every request the server's own. */
const DIRECT_FAILURES = { 'legacy-to-legacy': { 'dns-rebinding-protection': 'nobody sees the Host of the request' } };

export const FIXTURES = { legacy: 'legacy-server.mjs', modern: 'modern-server.mjs' };

/** `binary` is null for a direct run, in which only `DIRECT_FAILURES` may fail. */
export async function runConformance(context, report, name, fixture) {
  const { binary } = context;
  report.section(`conformance, ${name}`);
  const open = [];
  try {
    const server = new Child(fixture, context.node, [join(context.here, 'fixtures', fixture)]);
    open.push(server);
    const listening = await server.waitForLine(/^listening on \d+$/, START_MS);
    const upstream = await Tap.start({ targetPort: Number(listening.split(' ').at(-1)) });
    open.push(upstream);
    let { url } = upstream;
    let janus = null;
    if (binary !== null) {
      janus = await startJanus(binary, url, { shield: name.endsWith('-shielded'), ...SETTINGS[name] });
      open.push(janus.child);
      url = `http://127.0.0.1:${janus.port}/mcp`;
    }
    const results = await runSuite(context, name, url);
    checkSeen(report, results, binary === null ? {} : (MUST_PASS[name] ?? {}));
    judge(report, context, results, binary === null ? (DIRECT_FAILURES[name] ?? {}) : EXPECTED_FAILURES[name]);
    // To the client, the suite itself judges every message; here only what the server of the other era was sent.
    if (janus !== null && fixture === FIXTURES.legacy) {
      checkWire(report, 'to the server', findingsToLegacyServer(context.schema, upstream));
    }
    if (janus !== null && name === 'legacy-to-modern') {
      checkWire(report, 'to the server', findingsToBridgedServer(context.schema, upstream));
    }
    if (context.verbose && janus !== null) report.note(`the proxy's log:\n${janus.child.tail(200)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

/** Scenario -> its checks, as the suite wrote them down. */
async function runSuite(context, name, url) {
  const output = join(context.cache, 'conformance', name);
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const results = {};
  const revision = REVISIONS[name] ?? LATEST;
  const suite = join(context.nodeModules, '@modelcontextprotocol/conformance/dist/index.js');
  const child = new Child('conformance suite', context.node, [suite, 'server', '--url', url, '-o', output, '--requirements', revision]);
  await child.exitWithin(SUITE_MS);
  for (const scenario of [...required(context, revision).server, ...ALSO_REQUIRED[name]]) {
    results[scenario] = readChecks(output, scenario);
  }
  return results;
}

/** What the revision's frozen set requires, by role: `server` and `client`. */
export function required(context, revision) {
  const require = createRequire(join(context.nodeModules, '@modelcontextprotocol/conformance/package.json'));
  const file = join(context.nodeModules, `@modelcontextprotocol/conformance/requirements/${revision}.yaml`);
  return require('yaml').parse(readFileSync(file, 'utf8'));
}

function readChecks(output, scenario) {
  const prefix = new RegExp(`^server-${scenario}-\\d`);
  const folder = readdirSync(output).find((entry) => prefix.test(entry));
  return folder === undefined ? null : JSON.parse(readFileSync(join(output, folder, 'checks.json'), 'utf8'));
}

function checkSeen(report, results, mustPass) {
  for (const [scenario, ids] of Object.entries(mustPass)) {
    const passed = (results[scenario] ?? []).filter(({ status }) => status === 'SUCCESS').map(({ id }) => id);
    const missing = ids.filter((id) => !passed.includes(id));
    report.check(`${scenario}: nothing of it was left out`, missing.length === 0, missing.join(', '));
  }
}

/** Every scenario passes but for what is listed, and all that is listed fails. */
function judge(report, context, results, expected) {
  const used = new Set();
  for (const [scenario, checks] of Object.entries(results)) {
    if (checks === null || checks.length === 0) {
      report.check(scenario, false, 'the suite left no result');
      continue;
    }
    const failed = checks.filter(({ status }) => status === 'FAILURE');
    const unexpected = failed.filter(({ id }) => {
      // A message that breaks the schema is never covered by an entry for the whole scenario.
      const keys = id.startsWith('wire-schema') ? [`${scenario}:${id}`] : [scenario, `${scenario}:${id}`];
      const key = keys.find((entry) => entry in expected);
      if (key !== undefined) used.add(key);
      return key === undefined;
    });
    report.check(nameWithCount(scenario, checks, failed.length - unexpected.length), unexpected.length === 0, unexpected.map(describe).join('\n'));
    if (context.verbose) {
      for (const check of checks.filter(({ status }) => status === 'WARNING')) report.note(`warning, ${scenario}: ${describe(check)}`);
    }
  }
  for (const entry of Object.keys(expected)) {
    report.check(`listed as failing, and fails: ${entry}`, used.has(entry), 'it passes now: take it off scenarios/expected-failures.mjs');
  }
}

function nameWithCount(scenario, checks, expectedFailures) {
  const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
  return `${scenario} (${passed} checks${expectedFailures > 0 ? `, ${expectedFailures} failing as listed` : ''})`;
}

function describe({ id, errorMessage, details }) {
  const more = id.startsWith('wire-schema') ? ` ${JSON.stringify(details).slice(0, 600)}` : '';
  return `${id}: ${errorMessage ?? 'no message'}${more}`;
}
