// Owns: what a pipe shows in another way than HTTP does: whose it is, that a call or a subscription on it is over, and how its
// streams break (with the program alone).
// Does not own: what HTTP shows as well (answers*.mjs). Each entry gives the function that answers, or nothing where the pipe is
// on the other side.

import { has } from './answers-bridged.mjs';

const EVENT_MS = 5000;
/** The users that come in twos; everything that they say to a server has their name in it. */
const USERS = /\b(alice|bob)\b/g;

const ofUpstream = (look) => ({ upstream }) => (upstream.kind === 'pipe' ? look : undefined);

export const PIPED = {
  'one-user-per-session': () => (_, world) => usersApart(world),
  'own-token': () => (_, world) => (world.upstream.kind === 'pipe' ? usersApart(world) : noToken(world)),
  listening: () => listening,
  ended: () => ended,
  'cancelled-upstream': ofUpstream(cancelled),
  'runs-upstream': ofUpstream(runs),
  'break-streams-of': ofUpstream(breakStreams),
  'eras-of': ofUpstream(erasSince),
  'nothing-left-open': ofUpstream(nothingLeftOpen),
  'all-gone': () => allGone,
};

/** Nobody but one user has spoken on any of the pipes or sessions. */
function usersApart({ upstream }) {
  const users = new Map();
  for (const { direction, exchange, message } of upstream.entries.items) {
    const names = direction === 'request' ? (JSON.stringify(message).match(USERS) ?? []) : [];
    for (const name of names) users.set(exchange.session, (users.get(exchange.session) ?? new Set()).add(name));
  }
  const crossed = [...users].filter(([, names]) => names.size > 1).map(([session]) => session);
  const seen = new Set([...users.values()].flatMap((names) => [...names]));
  return { right: crossed.length === 0 && seen.size === 2, detail: { crossed, seen: [...seen] } };
}

/** Who is launched by a host has no token to pass on. */
function noToken({ upstream }) {
  const tokens = upstream.exchanges.map(({ headers }) => headers.authorization).filter((token) => token !== undefined);
  return { right: tokens.length === 0, detail: tokens };
}

/** Waits until the server has acknowledged a subscription that has all of `wanted` since the mark. */
async function listening({ wanted }, { upstream, marks }) {
  const recent = () => upstream.entries.items.slice(marks.upstream);
  const acknowledged = () => recent().some(({ direction, message }) => direction === 'response' && has(message, wanted));
  await upstream.entries.waitFor(acknowledged, EVENT_MS);
  return { right: acknowledged(), detail: `no acknowledgement of ${JSON.stringify(wanted)}` };
}

/** Waits until no subscription is open on the pipe that last got the `marker` call; where hosts have ended, on none. */
async function ended({ marker }, { upstream, front }) {
  const isMarker = ({ method, params }) => method === 'tools/call' && params.name === marker?.tool && params.arguments?.name === marker?.name;
  const calls = upstream.entries.filter(({ direction, message }) => direction === 'request' && isMarker(message));
  const concerned = (exchange) => front.kind === 'pipe' || exchange === calls.at(-1)?.exchange;
  const open = () => openListens(upstream).filter(({ exchange }) => concerned(exchange)).length;
  const over = () => open() === 0;
  await Promise.race([upstream.entries.waitFor(over, EVENT_MS), upstream.endings.waitFor(over, EVENT_MS)]);
  return { right: open() === 0, detail: `${open()} still open` };
}

function openListens(tap) {
  const listens = tap.entries.filter(({ direction, message }) => direction === 'request' && message.method === 'subscriptions/listen');
  return listens.filter((listen) => !isOver(tap, listen));
}

/** A request on a pipe is over with its answer, its cancellation, or its program. */
function isOver(tap, { exchange, message }) {
  return exchange.over || tap.entries.items.some((entry) => entry.exchange === exchange && (answers(entry, message) || cancels(entry, message)));
}

const answers = ({ direction, message }, { id }) => direction === 'response' && message.method === undefined && message.id === id;
const cancels = ({ direction, message }, { id }) => direction === 'request' && message.method === 'notifications/cancelled' && message.params?.requestId === id;

function lastCall(tool, { entries }) {
  return entries.filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call' && message.params.name === tool).at(-1);
}

/** On a pipe a server of either era is told of a cancellation in words, and then says nothing more of the call. */
async function cancelled({ tool, line }, { upstream, server }) {
  const call = lastCall(tool, upstream);
  const seen = await upstream.entries.waitFor((entry) => entry.exchange === call.exchange && cancels(entry, call.message), EVENT_MS);
  if (seen === null) return { right: false, detail: `no notifications/cancelled for the request ${JSON.stringify(call.message.id)}` };
  if (line === undefined) return { right: true };
  const said = await server.lines.waitFor(({ text }) => text === line, EVENT_MS);
  return { right: said !== null, detail: 'it was told, but the tool went on' };
}

function runs({ tool }, { upstream }) {
  return { right: !isOver(upstream, lastCall(tool, upstream)) };
}

/** A stream on a pipe only breaks with the program. */
async function breakStreams({ side, verb }, world) {
  if (side === 'front') return { broken: world.front.breakStreams(verb) };
  const broken = world.upstream.alive.length;
  await world.restart();
  return { broken };
}

/** In which eras calls have reached a server since the mark. */
function erasSince({ ask: _ask }, { upstream, marks }) {
  const calls = upstream.entries.items.slice(marks.upstream).filter(({ direction, message }) => direction === 'request' && message.method === 'tools/call');
  const eras = calls.map(({ message }) => ('io.modelcontextprotocol/protocolVersion' in (message.params._meta ?? {}) ? 'modern' : 'legacy'));
  return { eras: [...new Set(eras)] };
}

/** Since the programs' last start: no subscription is left on any that still runs. */
async function nothingLeftOpen({ ask: _ask }, { upstream, restartedAt, target }) {
  const recent = upstream.exchanges.slice(restartedAt);
  const here = ({ exchange }) => recent.includes(exchange) && !exchange.over;
  const left = () => (target.modern ? openListens(upstream).filter(here).map(({ message }) => message.id) : subscribed(upstream, here));
  const over = () => left().length === 0;
  await Promise.race([upstream.entries.waitFor(over, EVENT_MS), upstream.endings.waitFor(over, EVENT_MS)]);
  return { right: recent.length > 0 && left().length === 0, detail: { pipes: recent.length, left: left() } };
}

/** The URIs that were subscribed to on a pipe more often than that was ended. */
function subscribed({ entries }, here) {
  const counts = new Map();
  const steps = { 'resources/subscribe': 1, 'resources/unsubscribe': -1 };
  for (const entry of entries.items.filter(here)) {
    const change = entry.direction === 'request' ? steps[entry.message.method] : undefined;
    if (change === undefined) continue;
    const key = `${entry.exchange.session} ${entry.message.params.uri}`;
    counts.set(key, (counts.get(key) ?? 0) + change);
  }
  return [...counts].filter(([, count]) => count !== 0).map(([key]) => key);
}

/** Waits for the end of every program that was started in this run: the proxies' and the servers'. */
async function allGone({ ask: _ask }, { front, upstream }) {
  const pipes = [front, upstream].filter((leg) => leg?.kind === 'pipe');
  const left = await Promise.all(pipes.map((leg) => leg.gone()));
  return { left: left.flat().map(({ session }) => session) };
}
