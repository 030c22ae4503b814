// Owns: what the official TypeScript client 2.x (2026-07-28) hears of a server's changes while it listens: two listeners
// of one user, one that asked for something else, and one of another user; across a restart, to the end of the proxy.
// Does not own: how the server is made to change (scenarios/targets.mjs, `changes`), or how it is reached (reach-modern.mjs).

import { Client } from '@modelcontextprotocol/client';

import { askRunner, check, same, sameProgress, step } from './checks.mjs';
import { reach } from './reach-modern.mjs';

const [where, targetText] = process.argv.slice(2);
const target = JSON.parse(targetText);
const { changes, ways } = target;
/** A program that a client has started serves it alone, so that clients of one user share nothing. */
const shared = ways.front === 'stdio' ? ['one'] : ['one', 'two'];
/** What the server tells of its own accord when a session begins; over HTTP there is no stream yet on which it could be heard. */
const unasked = ways.upstream === 'http' ? [] : (changes.unasked ?? []);

const HEAR_MS = 10_000;
/** A restarted server is looked for again after 1, 2 and 4 seconds. */
const HEAR_AGAIN_MS = 30_000;
/** How long to wait for what must not come. */
const QUIET_MS = 400;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A client with the changes that it was told, in order: `tools`, `prompts`, `resources`, `updated URI`. */
class Listener {
  heard = [];
  lists = {};
  logs = [];
  open = [];
  #wake = () => {};

  static async connect(name, token, listChanged) {
    const listener = new Listener();
    listener.name = name;
    const options = { versionNegotiation: { mode: { pin: '2026-07-28' } }, ...(listChanged && { listChanged: listener.#asOptions(listChanged) }) };
    listener.client = new Client({ name: 'interop-typescript-listener', version: '1.0.0' }, options);
    await listener.client.connect(reach(where, token));
    const { client } = listener;
    if (client.autoOpenedSubscription) listener.open.push(client.autoOpenedSubscription);
    for (const list of ['tools', 'prompts', 'resources'].filter((each) => !listChanged?.includes(each))) {
      client.setNotificationHandler(`notifications/${list}/list_changed`, () => listener.#note(list));
    }
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => listener.#note(`updated ${params.uri}`));
    client.setNotificationHandler('notifications/message', ({ params }) => listener.logs.push(params.level));
    return listener;
  }

  #asOptions(lists) {
    const onChanged = (list) => (error, items) => {
      this.lists[list] = items?.map(({ name }) => name);
      this.#note(error === null ? list : `error of ${list}: ${error.message}`);
    };
    return Object.fromEntries(lists.map((list) => [list, { debounceMs: 0, onChanged: onChanged(list) }]));
  }

  #note(change) {
    if (unasked.includes(change)) return;
    this.heard.push(change);
    this.#wake();
  }

  async listen(filter) {
    const subscription = await this.client.listen(filter);
    this.open.push(subscription);
    return subscription;
  }

  /** Waits until that many changes were heard, or the time is over: the comparison says what is missing. */
  async hears(count, timeoutMs) {
    const over = Date.now() + timeoutMs;
    while (this.heard.length < count && Date.now() < over) {
      await Promise.race([new Promise((resolve) => (this.#wake = resolve)), pause(over - Date.now())]);
    }
  }

  async close() {
    await Promise.all(this.open.splice(0).map((subscription) => subscription.close()));
  }
}

const everything = (filter) => [
  ...['tools', 'prompts', 'resources'].filter((list) => filter[`${list}ListChanged`]),
  ...(filter.resourceSubscriptions ?? []).map((uri) => `updated ${uri}`),
];

/** The four listeners and what each must have heard so far. */
const listeners = {};
const expected = { one: [], two: [], deaf: [], other: [] };

async function start() {
  const one = await Listener.connect('one', 'token-listen');
  listeners.one = one;
  same('the acknowledgement names what the server can tell', sorted((await one.listen(changes.asked)).honoredFilter), sorted(changes.honored));
  const lists = ['tools', 'resources'].filter((list) => changes.honored[`${list}ListChanged`]);
  const two = await Listener.connect('two', 'token-listen', lists);
  listeners.two = two;
  check('the SDK listens by itself where handlers are given', two.client.autoOpenedSubscription !== undefined);
  await two.listen({ resourceSubscriptions: changes.honored.resourceSubscriptions });
  listeners.deaf = await Listener.connect('deaf', 'token-listen');
  await listeners.deaf.listen({ promptsListChanged: true });
  listeners.other = await Listener.connect('other', 'token-other');
  await listeners.other.listen(changes.asked);
}

const sorted = (object) => Object.fromEntries(Object.entries(object).sort());

/** Makes each change once and lets all who must hear it hear it. */
async function makeChanges(round) {
  for (const change of changes.steps) {
    for (const name of change.everyone ? ['one', 'two', 'other'] : shared) expected[name].push(...change.tells);
    const result = await listeners.one.client.callTool({ name: change.name, arguments: change.arguments });
    check(`${round}: ${change.name} does its work`, !result.isError, result);
    await Promise.all(Object.entries(listeners).map(([name, listener]) => listener.hears(expected[name].length, HEAR_MS)));
    for (const [list, names] of Object.entries(change.lists ?? {})) {
      for (const name of shared.includes('two') ? names : []) check(`${round}: the SDK has ${name} in its new list`, listeners.two.lists[list]?.includes(name), listeners.two.lists);
    }
    for (const call of change.undo ?? []) await listeners.one.client.callTool(call);
  }
  await pause(QUIET_MS);
  compare(round);
}

function compare(round) {
  for (const [name, title] of [
    ['one', 'a listener hears each change once'],
    ['two', shared.includes('two') ? 'so does the second listener of the same user' : 'a second listener hears what is for everyone'],
    ['deaf', 'who asked for something else hears nothing'],
    ['other', 'another user hears what concerns its session'],
  ]) {
    same(`${round}: ${title}`, listeners[name].heard, expected[name]);
  }
}

async function callsMeanwhile() {
  const { client, logs } = listeners.one;
  const { name, arguments: args, steps } = target.progress;
  const seen = [];
  await client.callTool({ name, arguments: args }, { onprogress: ({ progress }) => seen.push(progress) });
  await sameProgress('progress arrives while listening', seen, steps, { tool: name, piped: ways.front !== 'http' });
  if (changes.logs === undefined) return;
  const { call, during, level, levels, count } = changes.logs;
  await client.callTool({ ...call });
  same('a call that names no level gets no logs', logs, []);
  let begun;
  const first = new Promise((resolve) => (begun = resolve));
  const options = during === undefined ? {} : { onprogress: begun };
  const logged = client.callTool({ ...call, _meta: { [LOG_LEVEL]: level } }, options);
  if (during !== undefined) {
    await first;
    await client.callTool(during);
  }
  await logged;
  // The SDK may take the answer before what came right before it.
  for (let tries = 0; logs.length < (levels?.length ?? count) && tries < 10; tries += 1) await pause(QUIET_MS / 10);
  if (levels !== undefined) same(`a call that names ${level} gets its logs from there on`, logs, levels);
  if (count !== undefined) same(`logs outside of the call's stream reach the one call that wants them`, logs.length, count);
  if (during !== undefined) await client.callTool(during);
}

/**
 * Streams break without the server noticing, and a change is told to nobody. A legacy server may refuse another stream
 * for a while; once it stands, who listens has heard of the change, or has been told to look again.
 */
async function breakStreams() {
  if (changes.unheard === undefined) return;
  const { broken } = await askRunner('break-streams');
  same('there was a stream for each session with listeners', broken, 2);
  const { call, tells, refuses, undo = [] } = changes.unheard;
  await listeners.one.client.callTool(call);
  const { sessions, refusals } = await askRunner('streams-again');
  check(`streams that broke are there again${refuses ? ', though the server refused them at first' : ''}`, sessions === 2 && (!refuses || refusals > 0), { sessions, refusals });
  await pause(QUIET_MS);
  for (const [name, listener] of Object.entries(listeners)) {
    const news = listener.heard.slice(expected[name].length);
    if (['one', 'two'].includes(name)) check(`${name} does not miss what was told on a broken stream`, tells.every((change) => news.includes(change)), news);
    same(`${name} is told nothing twice after a broken stream`, news, [...new Set(news)]);
    expected[name] = [...listener.heard];
  }
  for (const each of undo) await listeners.one.client.callTool(each);
}

/** After a restart, who listens to a legacy server is told to look again; a modern server's subscription ends. */
async function restart() {
  await askRunner('restart');
  if (changes.restart === 'ends') {
    const ends = Object.values(listeners).flatMap((listener) => listener.open.splice(0).map(({ closed }) => closed));
    same('a subscription ends with its server, and not as if on purpose', [...new Set(await Promise.all(ends))], ['remote']);
    await listeners.one.listen(changes.asked);
    await listeners.two.listen(changes.honored);
    await listeners.deaf.listen({ promptsListChanged: true });
    await listeners.other.listen(changes.asked);
    return;
  }
  const all = everything(changes.honored).filter((change) => !unasked.includes(change));
  const again = { one: all, two: all, deaf: changes.prompts ? ['prompts'] : [], other: all };
  await Promise.all(Object.entries(listeners).map(([name, listener]) => listener.hears(expected[name].length + again[name].length, HEAR_AGAIN_MS)));
  await pause(QUIET_MS);
  for (const [name, listener] of Object.entries(listeners)) {
    const before = expected[name].length;
    same(`after a restart ${name} is told once to look again at all`, listener.heard.slice(before).sort(), [...again[name]].sort());
    expected[name] = [...listener.heard];
  }
}

async function end() {
  await Promise.all(Object.values(listeners).map((listener) => listener.close()));
  const seen = await askRunner('nothing-left-open');
  check('nothing is left open at the server after the last listener', seen.right, seen.detail);
}

/** Several subscriptions on the one channel of a program, each with its own end. */
async function together() {
  const { one } = listeners;
  const [some, all] = [await one.listen({ promptsListChanged: true }), await one.listen(changes.honored)];
  const [before, { name, arguments: args, tells, undo = [] }] = [one.heard.length, changes.steps[0]];
  await one.client.callTool({ name, arguments: args });
  await one.hears(before + tells.length, HEAR_MS);
  await pause(QUIET_MS);
  // What is made a second time is taken away first, which is told as well.
  same('of two subscriptions on one channel, one is told', [...new Set(one.heard.slice(before))], tells);
  const heard = one.heard.length;
  await all.close();
  await one.client.callTool({ name, arguments: args });
  await pause(QUIET_MS);
  same('the other hears nothing after the end of the first', one.heard.slice(heard), []);
  for (const each of undo) await one.client.callTool(each);
  await some.close();
}

async function drain() {
  if (ways.front === 'stdio') return leave();
  const subscription = await listeners.one.listen(changes.asked);
  const seen = await askRunner('drain');
  check('the proxy drains', seen.right, seen.detail);
  same('a drain ends a subscription gracefully', await Promise.race([subscription.closed, pause(HEAR_MS).then(() => 'not at all')]), 'graceful');
}

/** The end of a host's clients is the end of all that was started for them. */
async function leave() {
  await listeners.one.listen(changes.asked);
  await Promise.all(Object.values(listeners).map(({ client }) => client.close()));
  const { left } = await askRunner('all-gone');
  same('nothing that was started is left', left, []);
}

await step('start', start);
await step('changes', () => makeChanges('at first'));
await step('calls', callsMeanwhile);
await step('broken streams', breakStreams);
if (ways.proxied) {
  await step('restart', restart);
  await step('changes after the restart', () => makeChanges('after a restart'));
}
await step('end', end);
if (ways.front === 'stdio') await step('several at once', together);
await step('drain', drain);
process.exit(0);
