// Owns: what the official TypeScript client 1.x (2025-11-25) sees of a server's tools at argv[2]: those of argv[3], in their order,
// which can be called, and none of the others, which are refused.
// Does not own: what the server lists (fixtures/bad-tools.mjs), or the other clients (listed.mjs, listed.py).

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { checkListed } from './listed-checks.mjs';

const [url, wanted] = process.argv.slice(2);
const client = new Client({ name: 'interop-typescript-legacy', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await checkListed(client, JSON.parse(wanted));
await client.close();
process.exit(0);
