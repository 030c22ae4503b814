// Owns: the transport by which the official TypeScript client 1.x reaches what the runner names: the URL of a Streamable HTTP
// endpoint, `{"sse": URL}` of an old HTTP+SSE one, or `{"command": [...]}`, a stdio server that the client starts.
// Does not own: the clients (legacy-client.mjs, bridged.mjs).

import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** `way` of the transport is `http`, `sse` or `stdio`; only the first of them has sessions that outlive a connection. */
export function wayOf(where) {
  return !where.startsWith('{') ? 'http' : JSON.parse(where).sse === undefined ? 'stdio' : 'sse';
}

/** The token says who the user is; a program that was started has only one user. `options`: of Streamable HTTP. */
export function reach(where, token, options = {}) {
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  const way = wayOf(where);
  if (way === 'http') return new StreamableHTTPClientTransport(new URL(where), { requestInit, ...options });
  if (way === 'sse') return new SSEClientTransport(new URL(JSON.parse(where).sse), { requestInit });
  const [command, ...args] = JSON.parse(where).command;
  return new StdioClientTransport({ command, args });
}
