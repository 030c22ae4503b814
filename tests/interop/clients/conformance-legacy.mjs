// Owns: what the official TypeScript client 1.x (2025-11-25) does for each client scenario of the conformance suite, once
// the wrapper (conformance-client.mjs) has put the proxy in front of the scenario's server.
// Does not own: the scenarios' checks, which the suite makes by what reaches its server.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** How long a call may take that asks something: a question that got lost must not use up the scenario's time. */
const ASKING_MS = 6000;

/** How long to wait for the server's answer to the request for its stream. */
const STREAM_MS = 5000;

const NAME = { name: 'interop-conformance', version: '1.0.0' };

/** Scenario -> what the client does; each gets a connected client. The scenarios of 2026-07-28 see it through the proxy. */
const SCENARIOS = {
  initialize: { act: (client) => client.listTools() },
  tools_call: { act: addNumbers },
  'sse-retry': { act: (client) => client.callTool({ name: 'test_reconnection', arguments: {} }) },
  'elicitation-sep1034-client-defaults': {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    act: (client) => client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} }, undefined, { timeout: ASKING_MS }),
  },
  'request-metadata': { capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} }, act: (client) => client.listTools() },
  'http-standard-headers': { act: oneOfEach },
  'http-custom-headers': { act: callsOfTheContext },
  'http-invalid-tool-headers': { act: everyTool },
  'json-schema-ref-no-deref': { act: (client) => client.listTools() },
  'json-schema-2020-12-preservation': { act: echoSchema },
  'sep-2322-client-request-state': { capabilities: { elicitation: {} }, act: roundTrips },
};

export async function run(scenario, url) {
  const { capabilities = {}, act } = SCENARIOS[scenario];
  const client = new Client(NAME, { capabilities });
  if (capabilities.elicitation) {
    // An empty answer leaves it to the SDK to fill in the defaults; the round trips want a yes.
    const content = scenario === 'sep-2322-client-request-state' ? { confirmed: true } : {};
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content }));
  }
  // The SDK asks for the server's stream on the side, and a call may overtake that on the way. What these scenarios' servers
  // say on the stream in the middle of a call is lost if there is none yet.
  let settled;
  const streaming = new Promise((resolve) => (settled = resolve));
  const watched = (input, init) => {
    const answer = fetch(input, init);
    if (init?.method === 'GET') answer.then(settled, settled);
    return answer;
  };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: watched }));
  await Promise.race([streaming, new Promise((resolve) => setTimeout(resolve, STREAM_MS))]);
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

/** Without a list first: the proxy has to know what to mirror all the same. */
async function callsOfTheContext(client) {
  const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
  for (const call of toolCalls) await client.callTool({ name: call.name, arguments: call.arguments });
}

/** The SDK knows nothing of headers, so whatever is in its list is called: the rest has to be left out before. */
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
  for (const name of ['test_mrtr_echo_state', 'test_mrtr_no_state', 'test_mrtr_unrelated', 'test_mrtr_no_result_type']) {
    await client.callTool({ name, arguments: {} });
  }
}
