// Owns: what the official TypeScript client 2.x (2026-07-28) sees of a server's tools at argv[2]: those of argv[3], in their order,
// which can be called, and none of the others, which are refused.
// Does not own: what the server lists (fixtures/bad-tools.mjs), or the other clients (listed-legacy.mjs, listed.py).

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { checkListed } from './listed-checks.mjs';

const [url, wanted] = process.argv.slice(2);
const client = new Client({ name: 'interop-typescript', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await checkListed(client, JSON.parse(wanted));
await client.close();
process.exit(0);
