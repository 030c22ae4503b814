// Owns: what the wire on both sides of the proxy shows of legacy clients before a modern server, and what a client script
// there has done to the world: streams broken, the proxy or the server restarted.
// Does not own: the other things a client asks the runner (answers.mjs), or what is right (bridged-target.mjs, clients/).

const EVENT_MS = 5000;

export const BRIDGED = {
  legs,
  listening,
  'headers-of': headersOf,
  'declared-to': declaredTo,
  'cancelled-upstream': cancelledUpstream,
  'runs-upstream': runsUpstream,
  'break-streams-of': ({ side, verb }, world) => ({ broken: world[side]?.breakStreams(verb) ?? 0 }),
  'own-token': ownToken,
  resumptions,
  'opened-again': openedAgain,
  ended,
  'eras-of': erasOf,
};

/** How often the server got the request since the mark, and the kinds that it asked for in each round. */
function legs({ method }, { upstream, marks }) {
  const recent = upstream.entries.items.slice(marks.upstream);
  const times = recent.filter(({ direction, message }) => direction === 'request' && message.method === method).length;
  const asked = recent.filter(({ direction, message }) => direction === 'response' && message.result?.resultType === 'input_required');
  const rounds = asked.map(({ message }) => Object.values(message.result.inputRequests ?? {}).map(kindOf).sort());
  return { times, rounds: rounds.filter((kinds) => kinds.length > 0) };
}

function kindOf({ method, params }) {
  if (method === 'elicitation/create') return params.mode === 'url' ? 'url' : 'form';
  return method.split('/')[0];
}

/** Waits until the server has acknowledged a subscription of that token, and of this proxy, that has all of `wanted`. */
async function listening({ token, wanted }, { upstream }) {
  const isOwn = ({ epoch, headers }) => epoch === upstream.epoch && headers.authorization === `Bearer ${token}`;
  const acknowledged = ({ direction, message, exchange }) => direction === 'response' && isOwn(exchange) && has(message, wanted);
  const seen = await upstream.entries.waitFor(acknowledged, EVENT_MS);
  return { right: seen !== null, detail: `no acknowledgement of ${JSON.stringify(wanted)}` };
}

export function has({ method, params }, wanted) {
  if (method !== 'notifications/subscriptions/acknowledged') return false;
  const { notifications } = params;
  return wanted.every((what) => notifications[what] === true || notifications.resourceSubscriptions?.includes(what));
}

/** The mirrored headers of the last call of that tool. */
function headersOf({ tool }, { upstream }) {
  const { headers } = callsOf(tool, upstream).at(-1).exchange;
  const mirrored = Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-'));
  return { headers: Object.fromEntries(mirrored.map(([name, value]) => [name.slice('mcp-param-'.length), value])) };
}

function callsOf(tool, { entries }) {
  return entries.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params.name === tool);
}

/** What the server was told, with the last call of that tool, of the client and of the log level. */
function declaredTo({ tool }, { upstream }) {
  const meta = callsOf(tool, upstream).at(-1).message.params._meta ?? {};
  const of = (key) => meta[`io.modelcontextprotocol/${key}`] ?? null;
  return { capabilities: of('clientCapabilities'), client: of('clientInfo')?.name, level: of('logLevel') };
}

/** A modern server is told of a cancellation by the end of the stream, and by nothing else. */
async function cancelledUpstream({ tool, line }, { upstream, server }) {
  const { exchange } = callsOf(tool, upstream).at(-1);
  const over = await upstream.endings.waitFor((ended) => ended === exchange, EVENT_MS);
  if (over === null || !exchange.aborted) return { right: false, detail: 'the stream of the call is still open, or ended by itself' };
  if (line === undefined) return { right: true };
  const said = await server.lines.waitFor(({ text }) => text === line, EVENT_MS);
  return { right: said !== null, detail: 'its stream ended, but the tool went on' };
}

/** Whether the last call of that tool is still under way at the server. */
function runsUpstream({ tool }, { upstream }) {
  return { right: !callsOf(tool, upstream).at(-1).exchange.over };
}

/** Whether each call that names a user came with that user's token, and nothing else had another's. */
function ownToken({ users }, { upstream }) {
  const wrong = callsOf('ask_user', upstream).filter(({ exchange, message }) => exchange.headers.authorization !== `Bearer token-${message.params.arguments.user}`);
  const tokens = new Set(upstream.exchanges.map(({ headers }) => headers.authorization));
  const missing = users.filter((user) => !tokens.has(`Bearer token-${user}`));
  return { right: wrong.length === 0 && missing.length === 0, detail: { wrong: wrong.map(({ message }) => message.params.arguments), missing } };
}

/** How often each stream of a call was asked for again, beyond the once or twice that a client may need. */
function resumptions({ most }, { front }) {
  const times = new Map();
  for (const { method, session, headers } of front.exchanges) {
    if (method !== 'GET' || headers['last-event-id'] === undefined) continue;
    const key = `${session?.slice(-12)} ${headers['last-event-id']}`;
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  const often = [...times].filter(([, count]) => count > most);
  return { right: often.length === 0, detail: Object.fromEntries(often) };
}

/** Waits until the session has a stream of its own since the mark. */
async function openedAgain({ session }, { front, marks }) {
  const since = () => front.exchanges.slice(marks.frontExchanges).some((exchange) => exchange.method === 'GET' && exchange.status === 200 && exchange.session === session);
  await front.opened.waitFor(since, EVENT_MS);
  return { right: since() };
}

/** Waits until no subscription of that token is open at the server. */
async function ended({ token }, { upstream }) {
  const open = () => {
    const listens = upstream.entries.filter(({ direction, message }) => direction === 'request' && message.method === 'subscriptions/listen');
    return listens.filter(({ exchange }) => exchange.headers.authorization === `Bearer ${token}` && !exchange.over).length;
  };
  await upstream.endings.waitFor(() => open() === 0, EVENT_MS);
  return { right: open() === 0, detail: `${open()} still open` };
}

/** In which eras the calls of that token reached the server. */
function erasOf({ token }, { upstream }) {
  const calls = upstream.entries.filter(({ direction, message, exchange }) => direction === 'request' && message.method === 'tools/call' && exchange.headers.authorization === `Bearer ${token}`);
  const eras = calls.map(({ message }) => ('io.modelcontextprotocol/protocolVersion' in (message.params._meta ?? {}) ? 'modern' : 'legacy'));
  return { eras: [...new Set(eras)] };
}
