// Owns: the transport by which the official TypeScript client 2.x reaches what the runner names: the URL of a Streamable HTTP
// endpoint, or `{"command": [...]}`, a stdio server that the client starts.
// Does not own: the clients (modern-client.mjs, listen-client.mjs, questions-client.mjs).

import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** The token says who the user is; a program that was started has only one user. */
export function reach(where, token) {
  if (!where.startsWith('{')) return new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
  const [command, ...args] = JSON.parse(where).command;
  return new StdioClientTransport({ command, args });
}
