// Owns: the transport by which the official TypeScript client 2.x reaches what the runner names: the URL of a Streamable HTTP
// endpoint, `{"command": [...]}`, a stdio server that the client starts, or, where it speaks the legacy era, `{"sse": URL}` of an
// old HTTP+SSE one.
// Does not own: the clients (modern-client.mjs, listen-client.mjs, questions-client.mjs).

import { SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** The token says who the user is; a program that was started has only one user. */
export function reach(where, token) {
  const options = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
  if (!where.startsWith('{')) return new StreamableHTTPClientTransport(new URL(where), options);
  const { sse, command: [command, ...args] = [] } = JSON.parse(where);
  if (sse !== undefined) return new SSEClientTransport(new URL(sse), options);
  return new StdioClientTransport({ command, args });
}
