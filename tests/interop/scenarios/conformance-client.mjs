// Owns: runs of the official conformance suite in the client role: the suite serves each scenario, and an official SDK's
// client meets it through the proxy, or directly. All scenarios that a revision requires but those of OAuth, in which the
// proxy takes no part.
// Does not own: what the clients do (clients/conformance-*.mjs), or which failures are known (expected-failures.mjs).

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { DONE } from '../clients/conformance-done.mjs';
import { Child } from '../lib/child.mjs';
import { required } from './conformance.mjs';
import { EXPECTED_FAILURES } from './expected-failures.mjs';

const SCENARIO_MS = 60_000;

/** The suite warns of a machine that is slow by 200 ms; too early and far too late are failures there too. */
const MAY_WARN = ['client-sse-retry-timing'];

/** Not required by the frozen set, but what a proxy is there to get right: schemas left whole. */
const ALSO_REQUIRED = { '2025-11-25': ['json-schema-2020-12-preservation'], '2026-07-28': ['json-schema-2020-12-preservation'] };

/** What is about the tools' schemas. */
export const SCHEMA_SCENARIOS = ['http-invalid-tool-headers', 'json-schema-ref-no-deref', 'json-schema-2020-12-preservation'];

/** The client may fail in it: what matters is which tools it does not call. */
const MAY_END_WITH_ERROR = ['http-invalid-tool-headers'];

/**
 * `client` is the generation of the SDK, `revision` that of the scenario's server, `era` what the proxy is told of it, `policy`
 * what it does about bad tools. `binary` is null for a direct run.
 */
export async function runConformanceClient(context, report, name, { client, revision, era = 'auto', policy = 'drop', scenarios }) {
  report.section(`conformance, client role, ${name}`);
  scenarios ??= [...required(context, revision).client.filter((scenario) => !scenario.startsWith('auth/')), ...ALSO_REQUIRED[revision]];
  const expected = context.binary === null ? {} : EXPECTED_FAILURES[name];
  for (const scenario of scenarios) {
    const { passed, faults } = await runScenario(context, name, { client, revision, era, policy }, scenario);
    if (scenario in expected) {
      report.check(`listed as failing, and fails: ${scenario}`, faults.length > 0, 'it passes now: take it off scenarios/expected-failures.mjs');
    } else {
      report.check(`${scenario} (${passed} checks)`, faults.length === 0 && passed > 0, faults.join('\n') || 'no check has passed');
    }
  }
  const unknown = Object.keys(expected).filter((entry) => !scenarios.includes(entry));
  report.check('all that is listed as failing is a scenario', unknown.length === 0, unknown.join(', '));
}

async function runScenario(context, name, { client, revision, era, policy }, scenario) {
  const output = join(context.cache, 'conformance', name, scenario.replaceAll('/', '-'));
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const suite = join(context.nodeModules, '@modelcontextprotocol/conformance/dist/index.js');
  const command = [context.node, join(context.here, 'clients/conformance-client.mjs'), client, context.binary ?? '-', era, policy].join(' ');
  const args = [suite, 'client', '--command', command, '--scenario', scenario, '--spec-version', revision, '-o', output];
  await new Child('conformance suite', context.node, args).exitWithin(SCENARIO_MS);
  const [folder] = readdirSync(output);
  if (folder === undefined) return { passed: 0, faults: ['the suite left no result'] };
  const read = (file) => readFileSync(join(output, folder, file), 'utf8');
  const checks = JSON.parse(read('checks.json'));
  const bad = checks.filter(({ id, status }) => status === 'FAILURE' || (status === 'WARNING' && !MAY_WARN.includes(id)));
  const faults = bad.map(({ id, status, errorMessage, description }) => `${id}: ${status}: ${errorMessage ?? description}`);
  if (!read('stdout.txt').includes(DONE) && !MAY_END_WITH_ERROR.includes(scenario)) faults.push(`the client failed:\n${read('stderr.txt')}`);
  return { passed: checks.filter(({ status }) => status === 'SUCCESS').length, faults };
}
