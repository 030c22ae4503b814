// Owns: the schemas of the official JSON-Schema-Test-Suite, each with what the suite means its references to be, the documents that
// its remote references lead to, and the same schemas with one reference broken.
// Does not own: bringing the suite (install.mjs), or who judges the schemas (scenarios/schema-suite.mjs).

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Dialect, by the suite's folder, and what declares it. */
export const DIALECTS = {
  draft4: 'http://json-schema.org/draft-04/schema#',
  draft6: 'http://json-schema.org/draft-06/schema#',
  draft7: 'http://json-schema.org/draft-07/schema#',
  'draft2019-09': 'https://json-schema.org/draft/2019-09/schema',
  'draft2020-12': 'https://json-schema.org/draft/2020-12/schema',
};

/** Where the suite has its remote documents served. */
const REMOTES = 'http://localhost:1234/';

/** Files all of whose schemas refer to the remote documents. */
const REMOTE_FILES = ['refRemote', 'optional/cross-draft'];
/** Further schemas that do, by file and description. */
const REMOTE_GROUPS = {
  dynamicRef: [
    'strict-tree schema, guards against misspelled properties',
    'tests for implementation dynamic anchor and reference link',
    '$ref and $dynamicAnchor are independent of order - $defs first',
    '$ref and $dynamicAnchor are independent of order - $ref first',
    '$ref to $dynamicRef finds detached $dynamicAnchor',
  ],
};
/** Files whose schemas are of dialects of their own. */
const OWN_DIALECT_FILES = ['vocabulary', 'optional/format-assertion'];
/** Files in which nothing is to be declared. */
const UNDECLARED_FILES = ['optional/no-schema'];
/** Files whose references are broken one by one. */
const REFERENCE_FILES = ['ref', 'anchor', 'dynamicRef', 'recursiveRef', 'defs', 'definitions', 'infinite-loop-detection', 'optional/id', 'optional/anchor', 'optional/dynamicRef'];

/** Every schema of the suite: {name, dialect, file, description, schema, tests, remote, ownDialect}, `tests` as the suite has them. */
export function suiteSchemas(suite) {
  return Object.keys(DIALECTS).flatMap((dialect) =>
    filesOf(join(suite, 'tests', dialect)).flatMap((file) =>
      JSON.parse(readFileSync(join(suite, 'tests', dialect, `${file}.json`), 'utf8')).map(({ description, schema, tests }, at) => ({
        name: `${dialect}.${file.replaceAll('/', '.')}.${at}`,
        dialect,
        file,
        description,
        schema: UNDECLARED_FILES.includes(file) ? schema : declared(schema, dialect),
        tests,
        remote: REMOTE_FILES.includes(file) || (REMOTE_GROUPS[file] ?? []).includes(description),
        ownDialect: OWN_DIALECT_FILES.includes(file),
      })),
    ),
  );
}

/** The suite's remote documents that the dialects use: URI -> file. */
export function suiteDocuments(suite) {
  const folder = join(suite, 'remotes');
  const used = (file) => !file.startsWith('draft') || Object.keys(DIALECTS).includes(file.split('/')[0]);
  return Object.fromEntries(filesOf(folder).filter(used).map((file) => [`${REMOTES}${file}.json`, join(folder, `${file}.json`)]));
}

/**
 * The schemas whose references stay within them, with the first reference made to lead to `target(old)`: {...the same, at}, where
 * `at` is the JSON pointer of the reference.
 */
export function broken(schemas, target) {
  return schemas
    .filter(({ file, remote }) => REFERENCE_FILES.includes(file) && !remote)
    .flatMap((entry) => {
      const schema = JSON.parse(JSON.stringify(entry.schema));
      const found = firstReference(schema, entry.dialect);
      if (found === null) return [];
      found.owner[found.keyword] = target(found.owner[found.keyword]);
      return [{ ...entry, schema, at: found.at }];
    });
}

/** The same reference to a place that is not there. */
export const toNowhere = (reference) => {
  const [base, fragment = ''] = reference.split('#');
  return fragment === '' || fragment.startsWith('/') ? `${base}#/nowhere/at/all` : `${base}#nowhere-at-all`;
};

function declared(schema, dialect) {
  if (schema === null || typeof schema !== 'object' || Array.isArray(schema) || '$schema' in schema) return schema;
  return { $schema: DIALECTS[dialect], ...schema };
}

/** Names below `folder` without `.json`, in an order that is always the same. */
function filesOf(folder, under = '') {
  if (!existsSync(folder)) throw new Error(`the test suite of JSON Schema has no ${folder}`);
  const entries = readdirSync(join(folder, under), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const name = under === '' ? entry.name : `${under}/${entry.name}`;
    if (entry.isDirectory()) return filesOf(folder, name);
    return name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : [];
  });
}

const ONE = ['additionalItems', 'additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then', 'unevaluatedItems', 'unevaluatedProperties'];
const MANY = ['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems'];
const NAMED = ['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties'];
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** The first reference at a place where every dialect has a schema, in the order of the text. */
function firstReference(root, dialect) {
  const references = dialect === 'draft2020-12' ? ['$ref', '$dynamicRef'] : ['$ref'];
  const places = [{ schema: root, at: '' }];
  while (places.length > 0) {
    const { schema, at } = places.shift();
    const keyword = references.find((name) => typeof schema[name] === 'string');
    if (keyword !== undefined) return { owner: schema, keyword, at: `${at}/${keyword}` };
    places.unshift(...Object.entries(schema).flatMap(([name, value]) => below(name, value, `${at}/${escaped(name)}`)));
  }
  return null;
}

function below(name, value, at) {
  if (ONE.includes(name) && isObject(value)) return [{ schema: value, at }];
  const within = (MANY.includes(name) && Array.isArray(value)) || (NAMED.includes(name) && isObject(value)) ? Object.entries(value) : [];
  return within.filter(([, schema]) => isObject(schema)).map(([key, schema]) => ({ schema, at: `${at}/${escaped(key)}` }));
}

const escaped = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');
