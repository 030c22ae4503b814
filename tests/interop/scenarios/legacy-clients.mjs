// Owns: one run of an official legacy SDK client against a legacy server, through the proxy between two taps or directly,
// with the server restarted in the middle.
// Does not own: the client's checks (clients/), the servers (targets.mjs), or what a client asks the runner (answers.mjs).

import { join } from 'node:path';

import { checkWire, findingsToLegacyClient, findingsToLegacyServer } from '../lib/wire-check.mjs';
import { driveClient, titleOf } from './sdk-clients.mjs';
import { described } from './targets.mjs';
import { begin, checkPrograms, OVER_HTTP } from './world.mjs';

const CLIENTS = {
  typescript: ({ node, here }) => [node, join(here, 'clients/legacy-client.mjs')],
  python: ({ pythonLegacy, here }) => [pythonLegacy, join(here, 'clients/legacy_client.py')],
};

/** `shield`: the proxy keeps the client's session across the restart. `binary` is null for a direct run. */
export async function runLegacyClient(context, report, clientName, target, { shield = false, ways = OVER_HTTP } = {}) {
  const { binary } = context;
  report.section(titleOf(`legacy ${clientName} client`, target, ways, binary, shield ? ', shielded' : ''));
  let world = null;
  try {
    world = await begin(context, target, { ways, shield });
    const command = [...CLIENTS[clientName](context), world.where, JSON.stringify(described(world, context)), shield ? 'kept' : 'lost'];
    await driveClient(report, `legacy ${clientName} client`, command, world);
    if (binary !== null) {
      await checkPrograms(report, world);
      checkWire(report, 'to the client', findingsToLegacyClient(context.schema, world.front));
      checkWire(report, 'to the server', findingsToLegacyServer(context.schema, world.upstream));
      if (context.verbose) world.proxies.forEach((proxy) => report.note(`the proxy's log:\n${proxy.tail(200)}`));
    }
  } catch (error) {
    report.check('the run itself', false, error.message);
  } finally {
    await world?.close();
  }
}
