// Owns: what the official TypeScript client 2.x does for each client scenario of the conformance suite, once the wrapper
// (conformance-client.mjs) has put the proxy in front of the scenario's server.
// Does not own: the scenarios' checks, which the suite makes by what reaches its server.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/** How long a call may take that asks something: a question that got lost must not use up the scenario's time. */
const ASKING_MS = 6000;

const NAME = { name: 'interop-conformance', version: '1.0.0' };

/** Scenario -> what the client does; each gets a connected client. */
const SCENARIOS = {
  initialize: { act: (client) => client.listTools() },
  tools_call: { act: addNumbers },
  'request-metadata': { capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} }, act: async () => {} },
  'http-standard-headers': { act: oneOfEach },
  'http-custom-headers': { act: callsOfTheContext },
  'http-invalid-tool-headers': { act: everyTool },
  'json-schema-ref-no-deref': { act: (client) => client.listTools() },
  'json-schema-2020-12-preservation': { act: echoSchema },
  'sep-2322-client-request-state': { capabilities: { elicitation: {} }, act: roundTrips },
  'sse-retry': { act: (client) => client.callTool({ name: 'test_reconnection', arguments: {} }) },
  'elicitation-sep1034-client-defaults': {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    act: (client) => client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} }, { timeout: ASKING_MS }),
  },
};

export async function run(scenario, url) {
  const { capabilities = {}, act } = SCENARIOS[scenario];
  const client = new Client(NAME, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } });
  if (capabilities.elicitation) {
    // An empty answer leaves it to the SDK to fill in the defaults; the round trips want a yes.
    const content = scenario === 'sep-2322-client-request-state' ? { confirmed: true } : {};
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content }));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await act(client);
  await client.close();
}

async function addNumbers(client) {
  await client.listTools();
  const { content } = await client.callTool({ name: 'add_numbers', arguments: { a: 5, b: 3 } });
  if (content[0]?.text !== 'The sum of 5 and 3 is 8') throw new Error(`the tool answered ${JSON.stringify(content)}`);
}

async function oneOfEach(client) {
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool({ name, arguments: {} });
  const { resources } = await client.listResources();
  for (const { uri } of resources) await client.readResource({ uri });
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) await client.getPrompt({ name, arguments: {} });
}

async function callsOfTheContext(client) {
  await client.listTools();
  const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
  for (const call of toolCalls) await client.callTool({ name: call.name, arguments: call.arguments });
}

/** The SDK has left out the tools whose headers no client may send; what it kept is called. */
async function everyTool(client) {
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool({ name, arguments: { region: 'here' } });
}

/** Gives the schema back as the client has it. */
async function echoSchema(client) {
  const { tools } = await client.listTools();
  const { inputSchema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
  await client.callTool({ name: 'json_schema_echo', arguments: { schema: inputSchema } });
}

async function roundTrips(client) {
  for (const name of ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_unrelated']) {
    await client.callTool({ name, arguments: {} });
  }
  // The SDK may refuse a result without a type; what counts is that it does not call again.
  await client.callTool({ name: 'test_mrtr_no_result_type', arguments: {} }).catch(() => {});
}
