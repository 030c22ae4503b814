// Owns: the command that the conformance suite starts as the client under test: it puts a proxy in front of the
// scenario's server (the last argument), runs an official SDK's client against the proxy, and ends both.
// Does not own: what the clients do (conformance-modern.mjs, conformance-legacy.mjs), or any check.
//
// Arguments: `modern` or `legacy`, the mcp-janus binary or `-` for none, the `era` of its upstream and its `schema.policy`, and the
// URL that the suite appends. Where the client came to its end without an error, standard output has the line DONE.

import { killAllStarted } from '../lib/child.mjs';
import { startJanus } from '../lib/janus.mjs';
import { DONE } from './conformance-done.mjs';

const MOST_MS = 25_000;

const [generation, binary, era, policy, url] = process.argv.slice(2);
const { run } = await import(`./conformance-${generation}.mjs`);

// The suite would end the shell that it started this in, and wait for the rest.
setTimeout(() => process.exit(124), MOST_MS).unref();
process.once('exit', killAllStarted);

let janus = null;
let front = url;
if (binary !== '-') {
  janus = await startJanus(binary, url, { settings: [`era = "${era}"`, ...(policy === 'drop' ? [] : [`schema.policy = "${policy}"`])] });
  front = `http://127.0.0.1:${janus.port}/mcp`;
}
let code = 0;
try {
  await run(process.env.MCP_CONFORMANCE_SCENARIO, front);
  console.log(DONE);
} catch (error) {
  code = 1;
  console.error(`${error?.name}: ${error?.message} ${error?.code ?? ''}`);
}
if (janus !== null) {
  await janus.child.stop();
  console.error(janus.child.tail(200));
}
process.exit(code);
