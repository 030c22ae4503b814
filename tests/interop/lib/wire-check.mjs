// Owns: which of the messages that a tap saw were sent by the proxy, and what is wrong with them.
// Does not own: the schemas (wire-schema.mjs), the recording (tap.mjs, pipe-tap.mjs), or how pipes are used (wire-piped.mjs).

import { pipeFaults } from './wire-piped.mjs';

const MODERN = '2026-07-28';
const LISTEN = 'subscriptions/listen';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** The only requests that may be answered with questions. */
const MAY_ASK = ['tools/call', 'prompts/get', 'resources/read'];
/** What a legacy server's question may hold, and an entry of `inputRequests` must not. */
const LEGACY_OF_QUESTIONS = ['elicitationId', 'task', '_meta'];

/** Findings about the answers to a modern client, and how many there were; what a modern server asks is `relayed`. */
export function findingsToClient(schema, tap, { relayed = false } = {}) {
  const findings = [];
  const sent = tap.entries.filter((entry) => entry.direction === 'response');
  for (const { message, requestMethod, exchange } of sent) {
    const about = nameOf(message, requestMethod);
    findings.push(...schema.findings(MODERN, message, requestMethod).map((finding) => `${about}: ${finding}`));
    if (exchange.responseHeaders['mcp-session-id'] !== undefined) findings.push(`${about}: it carries Mcp-Session-Id`);
    if ('method' in message && 'id' in message) findings.push(`${about}: a request has no place in this direction`);
    if (!relayed) findings.push(...questionFindings(message, requestMethod).map((finding) => `${about}: ${finding}`));
  }
  findings.push(...listenFindings(tap), ...pipeFaults(tap, 'out'));
  return { findings: [...new Set(findings)], messages: sent.length };
}

/** Questions come only where they may, say nothing of the legacy request that they come from, and can be answered. */
function questionFindings({ result }, requestMethod) {
  if (result?.resultType !== 'input_required') return [];
  const findings = MAY_ASK.includes(requestMethod) ? [] : ['it must not ask anything'];
  const entries = Object.values(result.inputRequests ?? {});
  if (entries.length === 0) findings.push('it asks nothing');
  if (typeof result.requestState !== 'string') findings.push('it has no requestState, so no retry can find the call');
  for (const { method, params = {}, ...rest } of entries) {
    findings.push(...Object.keys(rest).map((member) => `the question ${method} has the member ${member}`));
    findings.push(...LEGACY_OF_QUESTIONS.filter((word) => word in params).map((word) => `the question ${method} has the legacy word ${word}`));
  }
  return findings;
}

/** A subscription begins with its acknowledgement, and all that is told in it names it and was asked for. */
function listenFindings(tap) {
  const findings = [];
  const listens = tap.entries.filter(({ direction, message }) => direction === 'request' && message.method === LISTEN);
  for (const { exchange, message: asked } of listens) {
    const told = tap.entries.filter((entry) => entry.exchange === exchange && entry.direction === 'response' && isToldBy(tap, entry.message, asked));
    if (exchange.status === 200 && told[0]?.message.method !== ACKNOWLEDGED) findings.push(`${LISTEN}: the first message is ${told[0]?.message.method}`);
    const filter = told[0]?.message.params?.notifications ?? {};
    for (const { message } of told) {
      if (message.params?._meta?.[SUBSCRIPTION_ID] !== asked.id) findings.push(`${message.method}: it does not name its subscription`);
      if (!covers(filter, message)) findings.push(`${message.method}: nothing in the acknowledgement covers it`);
    }
  }
  return findings;
}

/** A stream of HTTP has only what its subscription tells; on a pipe, everything says itself what it belongs to. */
function isToldBy({ kind }, { method, params }, asked) {
  return method !== undefined && (kind === 'http' || params?._meta?.[SUBSCRIPTION_ID] === asked.id);
}

function covers(filter, { method, params }) {
  if (method === ACKNOWLEDGED) return true;
  if (method === 'notifications/resources/updated') return filter.resourceSubscriptions?.some((uri) => params.uri.startsWith(uri)) ?? false;
  const list = /^notifications\/(tools|prompts|resources)\/list_changed$/.exec(method)?.[1];
  return filter[`${list}ListChanged`] === true;
}

/** Findings about what a legacy server was sent, but for the probe that its era was found by. */
export function findingsToLegacyServer(schema, tap) {
  const findings = pipeFaults(tap, 'in');
  const revision = negotiated(tap);
  const sent = tap.entries.filter(({ direction, message }) => direction === 'request' && !isProbe(message));
  const questions = questionsOf(tap);
  for (const { message, exchange } of sent) {
    const isAnswer = message.method === undefined;
    const question = isAnswer ? questions.get(keyOf(exchange, message)) : undefined;
    const faults = [...schema.findings(revision, message, question?.method), ...headerFaults(message, exchange, revision)];
    if (isAnswer) faults.push(...answerFaults(question));
    findings.push(...faults.map((fault) => `${nameOf(message, question?.method)}: ${fault}`));
  }
  if (tap.kind === 'pipe') findings.push(...beginnings(schema, tap));
  return { findings: [...new Set(findings)], messages: sent.length };
}

/** A legacy server's pipe begins with its handshake; before that it may be probed once, in a pipe that then was silent or refused. */
function beginnings(schema, tap) {
  return tap.exchanges.flatMap((pipe) => {
    const sent = tap.entries.filter(({ direction, exchange }) => direction === 'request' && exchange === pipe).map(({ message }) => message);
    const [probes, rest] = [sent.filter(isProbe), sent.filter((message) => !isProbe(message))];
    const faults = probes.flatMap((probe) => schema.findings(MODERN, probe));
    if (probes.length > 1) faults.push(`it was probed ${probes.length} times`);
    if (probes.length > 0 && !isProbe(sent[0])) faults.push(`it was probed after ${sent[0].method}`);
    const methods = rest.map(({ method }) => method);
    if (rest.length > 0 && methods[0] !== 'initialize') faults.push(`it begins with ${methods[0]}`);
    if (rest.length > 1 && methods[1] !== 'notifications/initialized') faults.push(`the handshake goes on with ${methods[1]}`);
    for (const method of ['initialize', 'notifications/initialized']) {
      if (methods.filter((each) => each === method).length > 1) faults.push(`${method} came again`);
    }
    return faults.map((fault) => `${pipe.session}: ${fault}`);
  });
}

/** What the server asked, by session and id: the method, and how often it was answered. */
function questionsOf(tap) {
  const asked = tap.entries.filter(({ direction, message }) => direction === 'response' && message.method !== undefined && 'id' in message);
  return new Map(asked.map(({ exchange, message }) => [keyOf(exchange, message), { method: message.method, answers: 0 }]));
}

function keyOf({ session }, { id }) {
  return `${session} ${JSON.stringify(id)}`;
}

function answerFaults(question) {
  if (question === undefined) return ['it answers nothing that the server asked in this session'];
  question.answers += 1;
  return question.answers > 1 ? ['it was answered before'] : [];
}

/** Findings about what a legacy client was sent. */
export function findingsToLegacyClient(schema, tap) {
  const revision = negotiated(tap);
  const sent = tap.entries.filter(({ direction }) => direction === 'response');
  const findings = sent.flatMap(({ message, requestMethod }) =>
    schema.findings(revision, message, requestMethod).map((fault) => `${nameOf(message, requestMethod)}: ${fault}`),
  );
  return { findings: [...new Set([...findings, ...pipeFaults(tap, 'out')])], messages: sent.length };
}

/** Findings about what a modern server was sent. */
export function findingsToModernServer(schema, tap) {
  const sent = tap.entries.filter(({ direction }) => direction === 'request');
  const findings = sent.flatMap(({ message }) => schema.findings(MODERN, message).map((fault) => `${nameOf(message)}: ${fault}`));
  return { findings: [...new Set([...findings, ...pipeFaults(tap, 'in')])], messages: sent.length };
}

export function checkWire(report, direction, { findings, messages }) {
  report.check(`${messages} messages ${direction} follow the official schema`, findings.length === 0 && messages > 0, findings.join('\n'));
}

/** The revision that the server chose in its answer to `initialize`. */
function negotiated(tap) {
  const answer = tap.entries.items.find((entry) => entry.direction === 'response' && entry.requestMethod === 'initialize' && entry.message.result);
  return answer?.message.result.protocolVersion ?? 'never negotiated';
}

/** The one modern request that the proxy may send to a server whose era it does not know yet. */
function isProbe(message) {
  return message.method === 'server/discover';
}

function headerFaults(message, { headers, path }, revision) {
  const faults = Object.keys(headers)
    .filter((name) => name === 'mcp-method' || name === 'mcp-name' || name.startsWith('mcp-param-'))
    .map((name) => `it carries the modern header ${name}`);
  // Neither a pipe nor the old HTTP+SSE has headers of the protocol.
  if (!path.startsWith('/mcp')) return faults;
  const version = headers['mcp-protocol-version'];
  if (message.method !== 'initialize') {
    if (version !== revision) faults.push(`it carries MCP-Protocol-Version ${version}, not ${revision}`);
    return faults;
  }
  for (const name of ['mcp-protocol-version', 'mcp-session-id']) {
    if (headers[name] !== undefined) faults.push(`it carries the header ${name}`);
  }
  return faults;
}

function nameOf(message, requestMethod) {
  if (message?.method !== undefined) return message.method;
  return `${'error' in (message ?? {}) ? `error ${message.error?.code}` : 'result'} of ${requestMethod ?? 'an unknown request'}`;
}
