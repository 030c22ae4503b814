// Owns: the killing of servers for the client script that is there for it, and how many calls came to them.
// Does not own: what is left of the others that are killed (kills.mjs), or what is right (clients/kills-client.mjs).

const EVENT_MS = 5000;

export const KILLS = {
  kill: async (_, { upstream }) => ({ killed: await upstream.kill() }),
  'calls-at-server': callsAtServer,
};

/** Waits until that many calls of the tool have come to the servers, and gives how many there were. */
async function callsAtServer({ tool, times }, { upstream }) {
  const calls = () => upstream.entries.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params.name === tool).length;
  await upstream.entries.waitFor(() => calls() >= times, EVENT_MS);
  return { times: calls() };
}
