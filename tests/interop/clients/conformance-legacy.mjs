// Owns: what the official TypeScript client 1.x (2025-11-25) does for each client scenario of the conformance suite, once
// the wrapper (conformance-client.mjs) has put the proxy in front of the scenario's server.
// Does not own: the scenarios' checks, which the suite makes by what reaches its server.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** How long a call may take whose question may never have reached the proxy. */
const ASKING_MS = 6000;

const LISTENING_MS = 1000;

const NAME = { name: 'interop-conformance', version: '1.0.0' };

/** Scenario -> what the client does; each gets a connected client. */
const SCENARIOS = {
  initialize: { act: (client) => client.listTools() },
  tools_call: { act: addNumbers },
  'sse-retry': { act: callOnceListening },
  'elicitation-sep1034-client-defaults': {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    act: (client) => client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} }, undefined, { timeout: ASKING_MS }),
  },
};

export async function run(scenario, url) {
  const { capabilities = {}, act } = SCENARIOS[scenario];
  const client = new Client(NAME, { capabilities });
  if (capabilities.elicitation) {
    // An empty answer leaves it to the SDK to fill in the defaults.
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: {} }));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await act(client);
  await client.close();
}

/** The scenario takes any GET for the one that comes back; the SDK opens the session's own stream in the background. */
async function callOnceListening(client) {
  await new Promise((resolve) => setTimeout(resolve, LISTENING_MS));
  await client.callTool({ name: 'test_reconnection', arguments: {} });
}

async function addNumbers(client) {
  await client.listTools();
  const { content } = await client.callTool({ name: 'add_numbers', arguments: { a: 5, b: 3 } });
  if (content[0]?.text !== 'The sum of 5 and 3 is 8') throw new Error(`the tool answered ${JSON.stringify(content)}`);
}
