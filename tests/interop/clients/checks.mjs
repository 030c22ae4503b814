// Owns: how a client script talks with the runner: one JSON line per check, and questions that the runner answers.
// Does not own: the checks (the other scripts here).

import { createInterface } from 'node:readline';

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export function check(name, right, detail = '') {
  console.log(JSON.stringify({ check: name, right: Boolean(right), detail: typeof detail === 'string' ? detail : JSON.stringify(detail) }));
}

export function same(name, actual, expected) {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  check(name, a === e, `expected ${e}\n     got ${a}`);
}

/** Runs one step; whatever it throws is a failed check of that name. */
export async function step(name, body) {
  try {
    await body();
  } catch (error) {
    check(name, false, `${error?.name}: ${error?.message} ${error?.code ?? ''}`);
  }
}

/** Asks the runner to do or to look up something, and gives its answer. */
export async function askRunner(question, details = {}) {
  console.log(JSON.stringify({ ask: question, ...details }));
  const { value } = await answers.next();
  return JSON.parse(value);
}

/**
 * Progress that a program tells right before its answer is lost in the official TypeScript clients, which take the answer first;
 * so there the wire has the last word on what the client was told.
 */
export async function sameProgress(name, seen, wanted, { tool, legs, piped }) {
  if (!piped) return same(name, seen, wanted);
  same(name, (await askRunner('progress-of', { tool, legs })).steps, wanted);
  return same(`${name}, as far as the SDK lets it through`, seen, wanted.slice(0, seen.length));
}
