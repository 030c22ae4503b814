// Owns: one run of an official legacy SDK client against a legacy server, through the proxy between two taps or directly,
// with the server restarted in the middle.
// Does not own: the client's checks (clients/), the servers (targets.mjs), or what a client asks the runner (answers.mjs).

import { join } from 'node:path';

import { startJanus } from '../lib/janus.mjs';
import { freePort } from '../lib/ports.mjs';
import { Tap } from '../lib/tap.mjs';
import { checkWire, findingsToLegacyClient, findingsToLegacyServer } from '../lib/wire-check.mjs';
import { driveClient } from './sdk-clients.mjs';

const CLIENTS = {
  typescript: ({ node, here }) => [node, join(here, 'clients/legacy-client.mjs')],
  python: ({ pythonLegacy, here }) => [pythonLegacy, join(here, 'clients/legacy_client.py')],
};

/** `shield`: the proxy keeps the client's session across the restart. `binary` is null for a direct run. */
export async function runLegacyClient(context, report, clientName, target, { shield = false } = {}) {
  const { binary } = context;
  const how = binary === null ? ', directly' : shield ? ', shielded' : '';
  report.section(`legacy ${clientName} client, ${target.name}${how}`);
  const open = [];
  try {
    const port = await freePort();
    const world = { target, server: await target.start(context, port), outputs: [], restartedAt: 0 };
    open.push({ stop: () => world.server.stop() });
    world.restart = async () => {
      await world.server.stop('SIGKILL');
      world.server = await target.start(context, port);
    };
    world.upstream = await Tap.start({ targetPort: port });
    open.push(world.upstream);
    let front = world.upstream;
    let janus = null;
    if (binary !== null) {
      janus = await startJanus(binary, world.upstream.url, { shield });
      open.push(janus.child);
      front = await Tap.start({ targetPort: janus.port });
      open.push(front);
    }
    const command = [...CLIENTS[clientName](context), front.url, JSON.stringify(target.description), shield ? 'kept' : 'lost'];
    await driveClient(report, `legacy ${clientName} client`, command, world);
    if (janus !== null) {
      checkWire(report, 'to the client', findingsToLegacyClient(context.schema, front));
      checkWire(report, 'to the server', findingsToLegacyServer(context.schema, world.upstream));
      if (context.verbose) report.note(`the proxy's log:\n${janus.child.tail(200)}`);
    }
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    for (const thing of open.reverse()) await thing.stop();
  }
}
