// Owns: which of the messages that two taps saw were sent by the proxy, and what is wrong with them.
// Does not own: the schemas (wire-schema.mjs) or the recording (tap.mjs).

const MODERN = '2026-07-28';

/**
 * Findings about all that the proxy sent: answers to the modern client, requests and notifications to a legacy server.
 * `upstream` is null when the server behind is modern too, since there the proxy passes the client's bytes on.
 */
export function wireFindings(schema, downstream, upstream) {
  const findings = [];
  const seen = { toClient: 0, toServer: 0 };
  for (const { message, requestMethod, exchange } of downstream.entries.filter((entry) => entry.direction === 'response')) {
    seen.toClient += 1;
    for (const finding of schema.findings(MODERN, message, requestMethod)) findings.push(`to the client, ${nameOf(message, requestMethod)}: ${finding}`);
    if (exchange.responseHeaders['mcp-session-id'] !== undefined) findings.push('to the client: a response carries Mcp-Session-Id');
    if ('method' in message && 'id' in message) findings.push(`to the client: a request, ${message.method}`);
  }
  const revision = upstream === null ? null : negotiated(upstream);
  for (const { message, exchange } of upstream?.entries.filter((entry) => entry.direction === 'request') ?? []) {
    if (isProbe(message)) continue;
    seen.toServer += 1;
    for (const finding of schema.findings(revision, message)) findings.push(`to the server, ${nameOf(message)}: ${finding}`);
    findings.push(...legacyHeaderFindings(message, exchange, revision));
  }
  return { findings: [...new Set(findings)], seen };
}

/** The revision that the server chose in its answer to `initialize`. */
function negotiated(upstream) {
  const answer = upstream.entries.items.find((entry) => entry.direction === 'response' && entry.requestMethod === 'initialize' && entry.message.result);
  return answer?.message.result.protocolVersion ?? 'never negotiated';
}

/** The one modern request that the proxy may send to a server whose era it does not know yet. */
function isProbe(message) {
  return message.method === 'server/discover';
}

function legacyHeaderFindings(message, { headers }, revision) {
  const findings = [];
  const version = headers['mcp-protocol-version'];
  if (message.method === 'initialize') {
    if (version !== undefined) findings.push(`to the server: initialize carries MCP-Protocol-Version ${version}`);
    if (headers['mcp-session-id'] !== undefined) findings.push('to the server: initialize carries Mcp-Session-Id');
  } else if (version !== revision) findings.push(`to the server: ${message.method ?? 'a response'} carries MCP-Protocol-Version ${version}, not ${revision}`);
  const foreign = Object.keys(headers).filter((name) => name === 'mcp-method' || name === 'mcp-name' || name.startsWith('mcp-param-'));
  return [...findings, ...foreign.map((name) => `to the server: a modern header, ${name}`)];
}

function nameOf(message, requestMethod) {
  if (message?.method !== undefined) return message.method;
  return `${'error' in (message ?? {}) ? `error ${message.error?.code}` : 'result'} of ${requestMethod ?? 'an unknown request'}`;
}
