// Owns: what an official TypeScript client (argv[4]: `modern`, SDK 2.x, or `legacy`, SDK 1.x) finds of the server at argv[2], that
// argv[3] describes, when programs are killed in the middle of its calls: each call fails at once and is not run again, and the
// next one is served. argv[5] says what the runner kills: `servers`, or nothing of what this client needs (`stay`).
// Does not own: the killing (scenarios/kills.mjs), or how the server is reached (reach-*.mjs).

import { askRunner, check, same, step } from './checks.mjs';

const [where, targetText, era, role] = process.argv.slice(2);
const target = JSON.parse(targetText);

const AT_ONCE = 3;
/** What is lost is known at once; the rest is for a machine with much to do. */
const FAILS_MS = 2000;

const sdk = {
  modern: async () => {
    const { Client } = await import('@modelcontextprotocol/client');
    const { reach } = await import('./reach-modern.mjs');
    return { client: new Client({ name: 'interop-kills', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), transport: reach(where, 'token-kills') };
  },
  legacy: async () => {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { reach } = await import('./reach-legacy.mjs');
    return { client: new Client({ name: 'interop-kills', version: '1.0.0' }), transport: reach(where, 'token-kills') };
  },
};

async function connect() {
  const { client, transport } = await sdk[era]();
  client.onerror = () => {};
  await client.connect(transport);
  return client;
}

const callTool = (client, call, options) => (era === 'modern' ? client.callTool(call, options) : client.callTool(call, undefined, options));
const textOf = (result) => result.content.map((block) => block.text ?? '').join('\n');

/** Several calls that take long: what becomes of each of them. */
function begin(client) {
  const { name, arguments: args } = target.slow;
  const end = () => callTool(client, { name, arguments: args }, { timeout: 30_000 }).then(() => 'a result', ({ code, message }) => ({ code, message }));
  return Promise.all(Array.from({ length: AT_ONCE }, end));
}

async function killed(number) {
  let client = await connect();
  const echo = async (message) => textOf(await callTool(client, { name: target.echo.name, arguments: { message } }));
  const ends = begin(client);
  same(`kill ${number}: a call beside them is served`, await echo(`before ${number}`), `Echo: before ${number}`);
  await askRunner('calls-at-server', { tool: target.slow.name, times: number * AT_ONCE });
  const at = Date.now();
  const { killed: count } = await askRunner('kill');
  check(`kill ${number}: there was a program to kill`, count > 0, count);
  const outcomes = await ends;
  const late = Date.now() - at;
  // Over HTTP, the SDKs give the body of an answer that is no 200 as text.
  const isLoss = ({ code, message = '' }) => (code === -32603 || message.includes('-32603')) && message.includes('may have run');
  check(`kill ${number}: all its calls fail, at once`, outcomes.every(isLoss) && late < FAILS_MS, { outcomes, late });
  if (era === 'legacy') {
    await client.close();
    client = await connect();
  }
  same(`kill ${number}: the next call is served`, await echo(`after ${number}`), `Echo: after ${number}`);
  await client.close();
}

if (role === 'stay') await begin(await connect());
for (const number of [1, 2, 3]) await step(`kill ${number}`, () => killed(number));
const { times } = await askRunner('calls-at-server', { tool: target.slow.name, times: 3 * AT_ONCE });
same('nothing was run again', times, 3 * AT_ONCE);
process.exit(0);
