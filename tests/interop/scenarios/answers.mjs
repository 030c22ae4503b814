// Owns: what a client script asks the runner to do or to look up: restarts, the end of the proxy, and what the wire at the
// server shows.
// Does not own: the questions' place among the checks (clients/), or what the wire shows of a server's questions
// (answers-asked.mjs), of legacy clients before a modern server (answers-bridged.mjs), of stdio (answers-piped.mjs), and the
// killing of servers (answers-kills.mjs).

import { ASKED } from './answers-asked.mjs';
import { BRIDGED } from './answers-bridged.mjs';
import { KILLS } from './answers-kills.mjs';
import { PIPED } from './answers-piped.mjs';

const EVENT_MS = 5000;
/** Longer than the proxy waits before it asks for a stream again, so that it meets a server that has not noticed. */
const HALF_OPEN_MS = 1500;
const AGAIN_MS = 20_000;
const DRAIN_MS = 10_000;

const ANSWERS = {
  ...ASKED,
  ...BRIDGED,
  ...KILLS,
  async restart(_, world) {
    await world.restart();
    return {};
  },
  async 'restart-proxy'(_, world) {
    await world.restartProxy();
    return { left: world.left ?? [] };
  },
  cancelled: ({ tool }, world) => cancelledUpstream(tool, world),
  'break-streams': breakStreams,
  'streams-again': (_, world) => streamsAgain(world),
  'streams-stand': (_, world) => streamsStand(world),
  'nothing-left-open': (_, world) => nothingLeftOpen(world),
  drain: (_, world) => drain(world),
  'one-user-per-session': async (_, world) => oneUserPerSession(world),
  'asked-on': async ({ method, verb }, world) => askedOn(method, verb, world),
  ran: async ({ tool, message }, world) => ({ times: timesRun(tool, message, world) }),
};

/** A pipe shows some things in another way. */
export function answer(question, world) {
  const piped = [world.upstream, world.front].some((leg) => leg?.kind === 'pipe');
  const look = (piped ? PIPED[question.ask]?.(world) : undefined) ?? ANSWERS[question.ask];
  return look(question, world);
}

/** Looks for `notifications/cancelled` with the id that the server knows the call by. */
async function cancelledUpstream(tool, world) {
  const { entries } = world.upstream;
  const calls = entries.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params?.name === tool);
  const { message: call, exchange: asked } = calls.at(-1);
  const cancels = ({ message, exchange }) => message.method === 'notifications/cancelled' && message.params?.requestId === call.id && exchange.session === asked.session;
  const seen = await entries.waitFor(cancels, EVENT_MS);
  if (seen === null) return { right: false, detail: `no notifications/cancelled for the request ${JSON.stringify(call.id)}` };
  if (world.target.cancelledLine === undefined) return { right: true };
  const line = await world.server.lines.waitFor(({ text }) => world.target.cancelledLine.test(text), EVENT_MS);
  return { right: line !== null, detail: 'the server got the notification, but its tool went on' };
}

/** A session id that came with two different Authorization values has crossed users. */
function oneUserPerSession(world) {
  const users = new Map();
  for (const { session, headers } of world.upstream.exchanges) {
    if (session === undefined) continue;
    users.set(session, (users.get(session) ?? new Set()).add(headers.authorization));
  }
  const crossed = [...users].filter(([, tokens]) => tokens.size > 1).map(([id]) => id);
  const names = new Set([...users.values()].flatMap((tokens) => [...tokens]));
  return { right: crossed.length === 0 && names.size >= 3, detail: { crossed, users: [...names] } };
}

/** Whether the server has asked that on a stream of that verb. */
function askedOn(method, verb, { upstream }) {
  const asked = upstream.entries.filter(({ direction, message }) => direction === 'response' && message.method === method && 'id' in message);
  const verbs = asked.map(({ exchange }) => exchange.method);
  return { right: verbs.includes(verb), detail: verbs };
}

/** How often the tool ran with that message: by the server's own word, else by the results on the wire. */
function timesRun(tool, message, world) {
  if (world.target.ranLine !== undefined) {
    const wanted = world.target.ranLine(message);
    return world.outputs.flatMap((log) => log.filter(({ text }) => text === wanted)).length;
  }
  const { entries } = world.upstream;
  const calls = entries.filter((entry) => entry.direction === 'request' && entry.message.method === 'tools/call' && entry.message.params?.name === tool && entry.message.params?.arguments?.message === message);
  const ran = calls.filter(({ exchange, message: call }) => entries.items.some((entry) => entry.exchange.session === exchange.session && entry.message.id === call.id && entry.message.result !== undefined));
  return ran.length;
}

async function breakStreams(_, world) {
  world.brokenAt = world.upstream.exchanges.length;
  return { broken: world.upstream.halfBreakStreams(HALF_OPEN_MS) };
}

/** Waits for a stream in each session since they were broken, and gives what the server answered. */
async function streamsAgain({ upstream, brokenAt }) {
  const gets = () => upstream.exchanges.slice(brokenAt).filter(({ method }) => method === 'GET');
  const sessions = () => new Set(gets().filter(({ status }) => status === 200).map(({ session }) => session)).size;
  await upstream.opened.waitFor(() => sessions() === 2, AGAIN_MS);
  return { sessions: sessions(), refusals: gets().filter(({ status }) => status === 409).length };
}

/** Waits until a session's own stream is open on each leg that has such streams; on the server's, since its last start. */
async function streamsStand({ front, upstream, restartedAt }) {
  const legs = [[front, 0], [upstream, restartedAt]].filter(([leg]) => leg?.kind === 'http');
  const isOpen = ({ method, status, over }) => method === 'GET' && status === 200 && !over;
  const stand = ([leg, since]) => leg.opened.waitFor(() => leg.exchanges.slice(since).some(isOpen), EVENT_MS);
  return { right: (await Promise.all(legs.map(stand))).every((stream) => stream !== null) };
}

/** Since the server's last start: no stream is open and no subscription is left. */
async function nothingLeftOpen({ upstream, restartedAt, target, ways }) {
  const recent = () => upstream.exchanges.slice(restartedAt);
  // The session of the old HTTP+SSE is its stream, and is kept for the next call.
  const last = ({ method, status }) => method === 'GET' && status === 200 && ways.upstream === 'http';
  const streams = target.modern ? subscriptionsAt(upstream, recent()) : recent().filter(last);
  const open = () => streams.filter(({ over }) => !over).length;
  await upstream.endings.waitFor(() => open() === 0, EVENT_MS);
  const left = () => [...subscribed(upstream, recent())].filter(([, count]) => count !== 0);
  await upstream.entries.waitFor(() => left().length === 0, EVENT_MS);
  return { right: (streams.length > 0 || ways.upstream === 'sse') && open() === 0 && left().length === 0, detail: { streams: streams.length, open: open(), left: left() } };
}

function subscriptionsAt({ entries }, exchanges) {
  return entries.filter(({ exchange, direction, message }) => direction === 'request' && message.method === 'subscriptions/listen' && exchanges.includes(exchange)).map(({ exchange }) => exchange);
}

/** Session and URI -> how many more subscriptions than ends of one. */
function subscribed({ entries }, exchanges) {
  const counts = new Map();
  const steps = { 'resources/subscribe': 1, 'resources/unsubscribe': -1 };
  for (const { exchange, direction, message } of entries.items) {
    const change = direction === 'request' ? steps[message.method] : undefined;
    if (change === undefined || !exchanges.includes(exchange)) continue;
    const key = `${exchange.session} ${message.params.uri}`;
    counts.set(key, (counts.get(key) ?? 0) + change);
  }
  return counts;
}

async function drain({ janus }) {
  janus.process.kill('SIGTERM');
  const code = await janus.exitWithin(DRAIN_MS);
  return { right: code === 0, detail: `exit code ${code}` };
}
