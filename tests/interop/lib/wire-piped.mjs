// Owns: what is wrong with how the proxy uses a pipe, whoever is at its other end: one message in each line and nothing else,
// ids that are used once, and one answer to each request.
// Does not own: the messages themselves (wire-check.mjs, wire-bridged.mjs), or the recording (pipe-tap.mjs).

/** `way`: what the proxy writes is `in` for a server that it started, `out` for the host that started it. */
export function pipeFaults(tap, way) {
  if (tap.kind !== 'pipe') return [];
  const junk = tap.junk.filter((line) => line.way === way).map(({ text }) => `a line that is no message: ${text.slice(0, 200)}`);
  return [...junk, ...tap.exchanges.flatMap((pipe) => idFaults(tap, pipe, way).map((fault) => `${pipe.session}: ${fault}`))];
}

function idFaults({ entries }, pipe, way) {
  const own = way === 'in' ? 'request' : 'response';
  const faults = [];
  const used = new Set();
  /** The other side's requests: the id -> how often it was answered. */
  const asked = new Map();
  /** Those that nobody waits for any more, or that last as long as the pipe. */
  const open = new Set();
  for (const { exchange, direction, message } of entries.items) {
    if (exchange !== pipe) continue;
    if (message.method === 'notifications/cancelled' && direction !== own) open.add(JSON.stringify(message.params?.requestId));
    if (message.id === undefined) continue;
    const id = JSON.stringify(message.id);
    const isRequest = message.method !== undefined;
    if (isRequest && direction === own) {
      if (used.has(id)) faults.push(`the id ${id} was used before`);
      used.add(id);
    } else if (isRequest) {
      asked.set(id, 0);
      if (message.method === 'subscriptions/listen') open.add(id);
    } else if (direction === own && !asked.has(id)) {
      faults.push(`an answer to ${id}, which nobody asked`);
    } else if (direction === own) {
      asked.set(id, asked.get(id) + 1);
      if (asked.get(id) > 1) faults.push(`${id} was answered ${asked.get(id)} times`);
    }
  }
  if (way === 'out') faults.push(...[...asked].filter(([id, times]) => times === 0 && !open.has(id)).map(([id]) => `${id} was never answered`));
  return faults;
}
