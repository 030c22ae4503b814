// Owns: getting the official MCP JSON Schemas out of a pinned published package, one per revision.
// Does not own: what is validated against them (wire-schema.mjs).
//
// The conformance package is the only pinned package that carries the official schema files; its build inlines them
// as object literals in one bundle. The package's version is pinned exactly, so finding the literals by their shape is
// stable, and anything but exactly one match for a revision is an error, never a skipped check.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

const START = /\{\$schema:[`"'][^`"']*json-schema\.org[^`"']*[`"'],(?:\$defs|definitions):\{/g;

/** Definitions that exist in exactly one of the revisions that the bundle carries. */
const MARKS = {
  '2025-11-25': (defs) => 'ElicitRequestURLParams' in defs && 'InitializeRequest' in defs,
  '2026-07-28': (defs) => 'DiscoverResult' in defs && !('InitializeRequest' in defs),
};

/** revision -> the official schema document. Throws when one is missing or found twice. */
export function loadOfficialSchemas(nodeModules) {
  const bundle = readFileSync(join(nodeModules, '@modelcontextprotocol/conformance/dist/index.js'), 'utf8');
  const documents = [...bundle.matchAll(START)].map((match) => evaluate(literalAt(bundle, match.index)));
  const found = {};
  for (const [revision, isRevision] of Object.entries(MARKS)) {
    const matching = documents.filter((document) => isRevision(document.$defs ?? document.definitions));
    if (matching.length !== 1) {
      throw new Error(`expected one official schema of ${revision} in the conformance package, found ${matching.length}`);
    }
    found[revision] = matching[0];
  }
  return found;
}

function evaluate(literal) {
  // Through JSON, so that the result is made of this realm's plain objects.
  return JSON.parse(JSON.stringify(vm.runInNewContext(`(${literal})`, Object.create(null), { timeout: 5000 })));
}

/** The balanced object literal that starts at `start`; quotes of all three kinds hide the braces in them. */
function literalAt(text, start) {
  let depth = 0;
  let quote = null;
  for (let i = start; i < text.length; i += 1) {
    const c = text[i];
    if (quote !== null) {
      if (c === '\\') i += 1;
      else if (c === quote) quote = null;
    } else if (c === '"' || c === "'" || c === '`') quote = c;
    else if (c === '{' || c === '[') depth += 1;
    else if (c === '}' || c === ']') {
      depth -= 1;
      if (depth === 0) return text.slice(start, i + 1);
    }
  }
  throw new Error('unbalanced object literal in the conformance package');
}
