// Owns: runs in which the proxy judges the schemas of the official JSON-Schema-Test-Suite, each the outputSchema of a tool of a
// modern server (where any root is legal), and the verdict on its verdicts.
// Does not own: what the suite means (lib/schema-suite.mjs), or where the proxy is known to differ (suite-deviations.mjs).

import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Child } from '../lib/child.mjs';
import { probe, startJanus } from '../lib/janus.mjs';
import { MODERN, RawClient } from '../lib/raw-client.mjs';
import { broken, DIALECTS, suiteDocuments, suiteSchemas, toNowhere } from '../lib/schema-suite.mjs';
import { DEVIATIONS } from './suite-deviations.mjs';

const START_MS = 20_000;
const PAGE = 200;
/** Calls that are open at once. */
const AT_ONCE = 16;
/** Lines of one failed check. */
const MOST_FAULTS = 50;
const AT = '/outputSchema';

export async function runSchemaSuite(context, report) {
  const schemas = suiteSchemas(context.schemaSuite);
  const dialect = ({ ownDialect }) => (ownDialect ? ['unknown_dialect'] : []);
  const at = (kind) => (entry) => [`${kind} ${AT}${entry.at}`];
  await judged(context, report, 'as they are', schemas, (entry) => (entry.remote ? ['external_ref'] : dialect(entry)), { places: false });
  await judged(context, report, 'a reference to nowhere', broken(schemas, toNowhere), at('dangling_ref'));
  await judged(context, report, 'a reference to elsewhere', broken(schemas, () => 'https://elsewhere.invalid/schema.json'), at('external_ref'));
  const documents = Object.entries(suiteDocuments(context.schemaSuite));
  const flags = documents.flatMap(([uri, file]) => ['--schema-document', `${uri}=${file}`]);
  await judged(context, report, 'with its remote documents', schemas, dialect, { places: false, flags });
  await passed(context, report, schemas, documents);
  await enforced(context, report, schemas.filter(({ file }) => !file.startsWith('optional/')), documents);
}

/** What `probe` finds of each schema is just what is `expected` of it; without places, each kind counts once. */
async function judged(context, report, title, schemas, expected, { places = true, flags = [] } = {}) {
  report.section(`JSON-Schema-Test-Suite, ${title}`);
  const server = await listing(context, schemas);
  try {
    const { code, report: found, said } = await probe(context.binary, urlOf(server), flags);
    const tools = report.check('probe lists all tools', code === 0 && found?.tools?.listed === schemas.length, said ?? JSON.stringify(found?.tools));
    if (!tools) return;
    const findings = new Map(schemas.map(({ name }) => [name, []]));
    const strange = [];
    for (const { tool, at, kind } of found.findings) (findings.get(tool) ?? strange).push(places ? `${kind} ${at}` : kind);
    report.check('all findings are of the tools', strange.length === 0, strange.join('\n'));
    const deviations = DEVIATIONS[title] ?? {};
    for (const dialect of Object.keys(DIALECTS)) {
      const own = schemas.filter((entry) => entry.dialect === dialect);
      const faults = own.flatMap((entry) => {
        const wanted = deviations[entry.name]?.found ?? expected(entry);
        const got = [...new Set(findings.get(entry.name))].sort();
        if (got.join() === [...wanted].sort().join()) return [];
        return [`${entry.name} (${entry.description}): expected [${wanted.join(', ')}], got [${got.join(', ')}]\n    ${JSON.stringify(entry.schema).slice(0, 400)}`];
      });
      report.check(`${dialect}: ${own.length} schemas`, own.length > 0 && faults.length === 0, faults.join('\n'));
    }
    const unknown = Object.keys(deviations).filter((name) => !findings.has(name));
    report.check('all that is listed as differing is there', unknown.length === 0, unknown.join(', '));
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await server.stop();
  }
}

/** With the suite's documents in the settings, clients see every tool, its schema whole. */
async function passed(context, report, schemas, documents) {
  report.section('JSON-Schema-Test-Suite, as clients see it');
  const server = await listing(context, schemas);
  const open = [server];
  try {
    const janus = await startJanus(context.binary, urlOf(server), { settings: settingsOf(documents) });
    open.push(janus.child);
    const client = await RawClient.at(`http://127.0.0.1:${janus.port}/mcp`, MODERN);
    const { tools } = await client.list();
    const seen = tools.map(({ name, outputSchema }) => `${name} ${JSON.stringify(outputSchema)}`);
    const bad = Object.keys(DEVIATIONS['with its remote documents'] ?? {});
    const wanted = schemas.filter(({ name }) => !bad.includes(name)).map(({ name, schema }) => `${name} ${JSON.stringify(schema)}`);
    const missing = wanted.filter((tool) => !seen.includes(tool));
    report.check(`${wanted.length} schemas, whole and in order`, seen.join('\n') === wanted.join('\n'), `missing or changed:\n${missing.join('\n')}`.slice(0, 4000));
    if (context.verbose) report.note(`the proxy's log:\n${janus.child.tail(50)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

/** With `schema.results = "enforce"`, just the values pass that the suite takes for valid; what is optional is not asked for. */
async function enforced(context, report, schemas, documents) {
  report.section('JSON-Schema-Test-Suite, values as results');
  const server = await listing(context, schemas);
  const open = [server];
  try {
    const janus = await startJanus(context.binary, urlOf(server), { settings: ['schema.results = "enforce"', ...settingsOf(documents)] });
    open.push(janus.child);
    const client = await RawClient.at(`http://127.0.0.1:${janus.port}/mcp`, MODERN);
    await client.list();
    const cases = schemas.flatMap((entry) => entry.tests.map((test, at) => ({ ...entry, ...test, at })));
    const deviations = DEVIATIONS['values as results'] ?? {};
    const faults = Object.fromEntries(Object.keys(DIALECTS).map((dialect) => [dialect, []]));
    const next = cases.values();
    const caller = async () => {
      for (const { name, dialect, description, data, valid, at } of next) {
        const text = await client.ask('tools/call', { name, arguments: { at } });
        const { result, error } = JSON.parse(text);
        const passes = result !== undefined && !result.isError && JSON.stringify(result.structuredContent) === JSON.stringify(data);
        const refused = result?.isError === true && !('structuredContent' in result);
        const wanted = `${name}.${at}` in deviations ? !valid : valid;
        if (error !== undefined || (wanted ? !passes : !refused)) faults[dialect].push(`${name}.${at} (${description}): ${valid ? 'valid' : 'invalid'}, got ${text.slice(0, 300)}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, caller));
    for (const [dialect, list] of Object.entries(faults)) {
      const count = cases.filter((each) => each.dialect === dialect).length;
      report.check(`${dialect}: ${count} values`, count > 0 && list.length === 0, list.slice(0, MOST_FAULTS).join('\n'));
    }
    if (context.verbose) report.note(`the proxy's log:\n${janus.child.tail(50)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}

const settingsOf = (documents) => documents.map(([uri, file]) => `schema.documents.${JSON.stringify(uri)} = ${JSON.stringify(file)}`);
const urlOf = (server) => `http://127.0.0.1:${server.port}/mcp`;

/** A server that lists a tool for each schema. */
async function listing(context, schemas) {
  const texts = schemas.map(({ name, description, schema }) => JSON.stringify({ name, description, inputSchema: { type: 'object' }, outputSchema: schema }));
  const pages = [];
  for (let at = 0; at < texts.length; at += PAGE) pages.push(texts.slice(at, at + PAGE));
  const values = Object.fromEntries(schemas.map(({ name, tests }) => [name, tests.map(({ data }) => data)]));
  return startListing(context, pages, MODERN, values);
}

/** A server that lists these pages of tools, each a JSON text; `values` are what they may answer (fixtures/listing-server.mjs). */
export async function startListing({ node, here, cache }, pages, revision, values = {}) {
  const file = join(mkdtempSync(join(cache, 'config-')), 'tools.json');
  writeFileSync(file, JSON.stringify({ pages, values }));
  const server = new Child('listing server', node, [join(here, 'fixtures/listing-server.mjs'), file, revision]);
  server.port = Number((await server.waitForLine(/^listening on \d+$/, START_MS)).split(' ').at(-1));
  return server;
}
