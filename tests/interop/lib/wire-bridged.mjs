// Owns: what is wrong with the messages that the proxy sends where a legacy client meets a modern server: on the client's
// side the rules of sessions, event streams and questions, on the server's side those of stateless requests.
// Does not own: the schemas (wire-schema.mjs), the recording (tap.mjs, pipe-tap.mjs), or how pipes are used (wire-piped.mjs).

import { isDeepStrictEqual } from 'node:util';

import { pipeFaults } from './wire-piped.mjs';

const MODERN = '2026-07-28';
/** The only legacy revision in which streams begin with an event that holds nothing but an id. */
const PRIMED = '2025-11-25';
const META = 'io.modelcontextprotocol/';
const NAMED = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };
const OF_THE_SESSION = /^notifications\/((tools|prompts|resources)\/list_changed|resources\/updated)$/;
/** What a legacy client says to its session, and no modern server knows. */
const LEGACY_ONLY = [
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'notifications/initialized',
  'notifications/progress',
  'notifications/roots/list_changed',
];

/** Findings about what legacy clients were sent, each in the revision of its session. */
export function findingsToBridgedClient(schema, tap) {
  const revisions = revisionsOf(tap);
  const sent = tap.entries.filter(({ direction }) => direction === 'response');
  const findings = sent.flatMap((entry) => {
    const { message, requestMethod, exchange } = entry;
    const revision = requestMethod === 'initialize' ? message.result?.protocolVersion : revisions.get(exchange.session);
    // Only the newest legacy revision's official schema is at hand; a refusal without a session is judged by it as well.
    const faults = (revision ?? PRIMED) === PRIMED ? schema.findings(PRIMED, message, requestMethod) : [];
    return [...faults, ...(isStreamable(exchange) ? streamFaults(entry) : [])].map((fault) => `${nameOf(message, requestMethod)}: ${fault}`);
  });
  for (const exchange of tap.exchanges.filter(isStreamable)) findings.push(...eventFaults(exchange, revisions));
  findings.push(...progressFaults(tap), ...answerFaults(tap), ...pipeFaults(tap, 'out'));
  return { findings: [...new Set(findings)], messages: sent.length };
}

/** Session id -> the revision that its `initialize` was answered with. */
function revisionsOf(tap) {
  const begun = tap.entries.filter(({ requestMethod, message }) => requestMethod === 'initialize' && message.result !== undefined);
  return new Map(begun.map(({ exchange, message }) => [exchange.session, message.result.protocolVersion]));
}

/** Neither a pipe nor the old HTTP+SSE has more than one stream. */
function isStreamable({ path }) {
  return path.startsWith('/mcp');
}

function isOwnStream({ method, headers }) {
  return method === 'GET' && headers['last-event-id'] === undefined;
}

/** Changes go to the session's own stream alone, and what belongs to a call never does. */
function streamFaults({ message, exchange }) {
  if (exchange.status !== 200) return [];
  if (message.method === undefined) return isOwnStream(exchange) ? ['an answer has no place on the stream of the session'] : [];
  const ofSession = OF_THE_SESSION.test(message.method) || message.method === 'notifications/elicitation/complete';
  if (OF_THE_SESSION.test(message.method) && exchange.method !== 'GET') return ['it is on the stream of a call'];
  return isOwnStream(exchange) && !ofSession ? ['it is on the stream of the session'] : [];
}

/** Events can be taken up again by their ids, and in 2025-11-25 a stream begins with one; an answer at once is alone in it. */
function eventFaults({ method, session, headers, status, responseHeaders, events }, revisions) {
  const revision = revisions.get(session);
  if (status !== 200 || revision === undefined || events.length === 0) return [];
  if (method === 'POST' && events.length === 1 && events[0].data !== '') return [];
  const faults = [];
  const [first] = events;
  const resumed = headers['last-event-id'] !== undefined;
  if (revision === PRIMED && !resumed && (first.data !== '' || first.id === undefined || first.retry === undefined)) {
    faults.push(`${method}: its stream does not begin with an event of an id and a time to retry: ${JSON.stringify(first).slice(0, 200)}`);
  }
  if (revision !== PRIMED && events.some(({ data }) => data === '')) faults.push(`${method}: an event without data, to a client of ${revision}`);
  if (events.some(({ id }) => id === undefined)) faults.push(`${method}: an event without an id`);
  if (responseHeaders['x-accel-buffering'] !== 'no') faults.push(`${method}: its stream may be held back by an intermediary`);
  return faults;
}

/** Progress has the client's own token and only ever grows, whatever the rounds of the call; a replay repeats it. */
function progressFaults({ entries }) {
  const faults = [];
  const told = new Map();
  const tokens = new Map();
  for (const { direction, message, exchange } of entries.items) {
    const { session } = exchange;
    const token = message.params?._meta?.progressToken;
    if (direction === 'request' && token !== undefined) tokens.set(`${session} ${JSON.stringify(token)}`, true);
    if (direction !== 'response' || message.method !== 'notifications/progress') continue;
    const key = `${session} ${JSON.stringify(message.params.progressToken)}`;
    if (!tokens.has(key)) faults.push(`progress for ${key}, which is no token of this session`);
    const last = told.get(key) ?? -Infinity;
    if (message.params.progress <= last && exchange.headers['last-event-id'] === undefined) faults.push(`progress of ${key} went from ${last} to ${message.params.progress}`);
    told.set(key, message.params.progress);
  }
  return faults;
}

/** What is answered was asked in the same session, and an answer on another stream is a stream that was taken up again. */
function answerFaults({ entries }) {
  const asked = new Set();
  const faults = [];
  for (const { direction, message, exchange } of entries.items) {
    if (message.id === undefined) continue;
    const key = `${exchange.session} ${JSON.stringify(message.id)}`;
    if (direction === 'request' && message.method !== undefined) asked.add(key);
    if (direction === 'response' && message.method === undefined && message.id !== null && !asked.has(key)) faults.push(`an answer to ${key}, which nobody asked`);
  }
  return faults;
}

/**
 * Findings about what a modern server was sent for legacy clients, but for one `initialize` of each process of the proxy: it
 * may find out with a client's own whether the server serves legacy clients too. `processes`: how many there were at a time.
 */
export function findingsToBridgedServer(schema, tap, { processes = 1 } = {}) {
  const tried = new Map();
  const isTrial = ({ message, exchange }) => {
    if (message.method !== 'initialize') return false;
    tried.set(exchange.epoch, (tried.get(exchange.epoch) ?? 0) + 1);
    return tried.get(exchange.epoch) <= processes;
  };
  const sent = tap.entries.filter((entry) => entry.direction === 'request' && !isTrial(entry));
  const seen = new Map();
  const overHttp = tap.kind === 'http';
  const findings = sent.flatMap(({ message, exchange }) => {
    const faults = [...schema.findings(MODERN, message), ...(overHttp ? headerFaults(message, exchange) : [])];
    if (message.method === undefined) faults.push('a modern server asks nothing that could be answered');
    if (LEGACY_ONLY.includes(message.method)) faults.push('it is legacy vocabulary');
    if (message.method === 'notifications/cancelled' && overHttp) faults.push('only a pipe has such a word for the end of a stream');
    const id = idOf(exchange, message);
    // Several processes know nothing of each other's ids.
    if (message.id !== undefined && seen.has(id) && (processes === 1 || !overHttp)) faults.push(`the id ${id} was used before`);
    seen.set(id, true);
    return faults.map((fault) => `${message.method}: ${fault}`);
  });
  findings.push(...retryFaults(tap), ...pipeFaults(tap, 'in'));
  const streams = tap.exchanges.filter(({ method }) => overHttp && method !== 'POST').map(({ method }) => `${method}: a modern server has only POST`);
  return { findings: [...new Set([...findings, ...streams])], messages: sent.length };
}

/** Ids are used once by each process of the proxy, or on each pipe. */
function idOf({ method, session, epoch }, { id }) {
  return `${method === 'PIPE' ? session : epoch} ${JSON.stringify(id)}`;
}

function headerFaults(message, { headers }) {
  const faults = [];
  const must = (name, value) => {
    const given = decoded(headers[name]);
    if (given !== value) faults.push(`the header ${name} is ${given}, not ${value}`);
  };
  must('mcp-protocol-version', MODERN);
  must('mcp-method', message.method);
  must('mcp-name', message.params?.[NAMED[message.method]]);
  must('content-type', 'application/json');
  for (const name of ['mcp-session-id', 'last-event-id']) must(name, undefined);
  for (const type of ['application/json', 'text/event-stream']) {
    if (!headers.accept?.includes(type)) faults.push(`Accept is ${headers.accept}`);
  }
  // Only requests say in their body who sends them and in which revision.
  if (message.id === undefined) return faults;
  if (message.params?._meta?.[`${META}protocolVersion`] !== MODERN) faults.push('it does not name the version in its body');
  if (message.params?._meta?.[`${META}clientInfo`]?.name === undefined) faults.push('it does not say who sends it');
  return faults;
}

function decoded(value) {
  const inner = /^=\?base64\?(.*)\?=$/.exec(value ?? '')?.[1];
  return inner === undefined ? value : Buffer.from(inner, 'base64').toString('utf8');
}

/** A request with answers or a state is a request that the server answered so: same params, its state, its keys. */
function retryFaults({ entries }) {
  const open = [];
  const faults = [];
  const calls = new Map();
  for (const { direction, message, exchange } of entries.items) {
    // A request over HTTP is answered where it was asked.
    const key = exchange.method === 'PIPE' ? idOf(exchange, message) : exchange;
    if (direction === 'request') {
      calls.set(key, message);
      const { inputResponses, requestState } = message.params ?? {};
      if (inputResponses === undefined && requestState === undefined) continue;
      const at = open.findIndex(({ call, result }) => isRetryOf(message, call, result));
      if (at < 0) faults.push(`${message.method} ${message.params.name ?? message.params.uri}: its answers and state are of no question that it was asked: ${Object.keys(inputResponses ?? {})}`);
      else open.splice(at, 1);
    } else if (message.result?.resultType === 'input_required') {
      open.push({ call: calls.get(key), result: message.result });
    }
  }
  return faults;
}

function isRetryOf(message, call, { inputRequests = {}, requestState }) {
  const { inputResponses = {}, requestState: state } = message.params;
  return (
    call?.method === message.method &&
    state === requestState &&
    isDeepStrictEqual(Object.keys(inputResponses).sort(), Object.keys(inputRequests).sort()) &&
    isDeepStrictEqual(ownParams(message), ownParams(call))
  );
}

/** What the client's own request says, without what each leg has for itself. */
function ownParams({ params: { inputResponses: _answers, requestState: _state, _meta, ...params } }) {
  const { progressToken: _token, ...meta } = _meta;
  return { ...params, meta };
}

function nameOf(message, requestMethod) {
  if (message?.method !== undefined) return message.method;
  return `${'error' in (message ?? {}) ? `error ${message.error?.code}` : 'result'} of ${requestMethod ?? 'an unknown request'}`;
}
