// Owns: one run of the proxy with the file that hosts have for their servers: each of them at a path of its own, for clients of
// both eras.
// Does not own: what the clients check (clients/), or the servers (targets.mjs).

import { startJanusOfHost } from '../lib/janus.mjs';
import { PipeTap } from '../lib/pipe-tap.mjs';
import { freePort } from '../lib/ports.mjs';
import { pymodern } from './bridged.mjs';
import { clientCommand, driveClient } from './sdk-clients.mjs';
import { described, everything, filesystem, modernOf, pythonLegacy } from './targets.mjs';

/** Two programs of each era and a server over HTTP, called by a modern client: what one of them can do is the others' no matter. */
export async function runMcpServers(context, report) {
  report.section('servers of a host\'s file, each at a path of its own');
  const open = [];
  try {
    const targets = { everything, files: filesystem(context), pymodern: modernOf(pymodern) };
    const port = await freePort();
    const web = await pythonLegacy.start(context, port);
    open.push(() => web.stop());
    const pipes = PipeTap.start(context.node);
    open.push(() => pipes.stop());
    const servers = Object.fromEntries(Object.entries(targets).map(([name, target]) => [name, { command: pipes.command(target.command(context)) }]));
    const janus = await startJanusOfHost(context.binary, { ...servers, web: `http://127.0.0.1:${port}/mcp` });
    open.push(() => janus.child.stop());
    for (const [name, target] of Object.entries({ ...targets, web: pythonLegacy })) {
      const { slow: _slow, echo: _echo, ...description } = described({ target, ways: { front: 'http', upstream: name === 'web' ? 'http' : 'stdio' } }, context);
      const command = clientCommand(context, 'typescript', 'calls', `http://127.0.0.1:${janus.port}/${name}/mcp`, description, 'modern');
      await driveClient(report, `typescript client of ${name}`, command, { target, upstream: pipes });
    }
    await janus.child.stop();
    const left = await pipes.gone();
    report.check('all that was started has ended with the proxy', pipes.exchanges.length === 3 && left.length === 0, `${pipes.exchanges.length} started, ${left.length} left`);
    if (context.verbose) report.note(`the proxy's log:\n${janus.child.tail(200)}`);
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const stop of open.reverse()) await stop();
  }
}
