// Owns: the checks that the official TypeScript client 1.x makes of what comes outside of calls through the proxy, and of
// streams that break: changes of lists and resources, calls that are taken up again by the SDK's own means and by hand,
// restarts of the server and of the proxy, and that nothing is left open in the end.
// Does not own: starting anything, or what is right to say in a call (bridged-calls.mjs, bridged-asked.mjs).

import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

import { call, codeOf, connect, hasSessions, hears, leave, pause, Raw, serverOverHttp, textOf, way } from './bridged.mjs';
import { askRunner, check, same, step } from './checks.mjs';

const GREETING = 'fixture://greeting';
const LISTS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'];
/** What must not be told would be there by then. */
const QUIET_MS = 150;
const COUNT = { steps: 8, pause: 60 };
const ALL_STEPS = Array.from({ length: COUNT.steps }, (_, index) => index + 1);

const changes = (user, name, args) => call(user, { tool: name, arguments: args });

/** Whether the user is told just that of the change. */
async function tells(what, user, change, expected) {
  const from = user.told.items.length;
  await change();
  for (const one of new Set(expected)) await hears(user, one, from);
  await pause(QUIET_MS);
  same(what, user.told.items.slice(from), expected);
}

async function lists(user) {
  const seen = await askRunner('listening', { token: 'token-streams', wanted: LISTS });
  check('the proxy listens for changes once the session has begun', seen.right, seen.detail);
  const names = async () => (await user.client.listTools()).tools.map(({ name }) => name);
  await tells('a tool is added', user, () => changes(user, 'add_tool', { name: 'late' }), ['tools']);
  check('it is in the list', (await names()).includes('late'));
  await tells('it is removed, and that is told after the call', user, () => changes(user, 'remove_tool', { name: 'late' }), ['tools']);
  check('it is not in the list any more', !(await names()).includes('late'));
  await tells('the prompts change', user, () => changes(user, 'change_prompts', { name: 'any' }), ['prompts']);
  await tells('a resource is added', user, () => changes(user, 'add_resource', { uri: 'fixture://late' }), ['resources']);
  same('and can be read', textOf(await user.client.readResource({ uri: 'fixture://late' })), 'new');
}

async function subscriptions(user) {
  const touch = (uri) => () => changes(user, 'touch', { uri });
  await tells('nothing is told without a subscription', user, touch(GREETING), []);
  await user.client.subscribeResource({ uri: GREETING });
  await tells('a resource that was subscribed to', user, touch(GREETING), [`updated ${GREETING}`]);
  await tells('a resource that was not', user, touch('fixture://late'), []);
  await user.client.subscribeResource({ uri: 'fixture://late' });
  await tells('a second subscription', user, touch('fixture://late'), ['updated fixture://late']);
  await tells('the first one still stands', user, touch(GREETING), [`updated ${GREETING}`]);
  await user.client.unsubscribeResource({ uri: 'fixture://late' });
  await tells('nothing is told after its end', user, touch('fixture://late'), []);
}

/** Sessions of one user share what is listened for at the server, but each is told what it asked for itself. */
async function together(user) {
  const second = await connect({ token: 'streams' });
  const stranger = await connect({ token: 'stranger' });
  await second.client.subscribeResource({ uri: GREETING });
  const touch = () => changes(user, 'touch', { uri: GREETING });
  await tells('one session of two is told', user, touch, [`updated ${GREETING}`]);
  same('and so is the other', second.told.items, [`updated ${GREETING}`]);
  await second.client.unsubscribeResource({ uri: GREETING });
  await tells('one session is told when the other is not any more', user, touch, [`updated ${GREETING}`]);
  same('which is not', second.told.items, [`updated ${GREETING}`]);
  await leave(second);
  await tells('one session is told after the end of the other', user, touch, [`updated ${GREETING}`]);
  same('who did not ask is told nothing', stranger.told.items, []);
  await leave(stranger);
}

/** What happens while nobody listens is told once, when somebody does again. */
async function unheard() {
  await askRunner('mark');
  const raw = await new Raw('unheard').begin();
  const seen = await askRunner('listening', { token: 'token-unheard', wanted: LISTS });
  check('a session without a stream is listened for', seen.right, seen.detail);
  await pause(QUIET_MS);
  const change = async (name, args) => (await raw.request('tools/call', { name, arguments: args })).answer();
  for (let times = 0; times < 3; times += 1) await change('change_prompts', { name: 'any' });
  await change('add_resource', { uri: 'fixture://unheard' });
  await pause(QUIET_MS);
  const stream = await raw.get();
  await stream.next(({ method }) => method === 'notifications/resources/list_changed');
  await pause(QUIET_MS);
  const methods = stream.messages.items.map(({ method }) => method.split('/')[1]).sort();
  same('what changed before there was a stream is told once', methods, ['prompts', 'resources']);
  stream.abort();
  await raw.bare('DELETE');
}

async function brokenStream(user) {
  const from = user.told.items.length;
  check('the streams of sessions break', (await askRunner('break-streams-of', { side: 'front', verb: 'GET' })).broken > 0);
  await askRunner('mark');
  await pause(QUIET_MS);
  const other = await connect({ token: 'streams' });
  await changes(other, 'touch', { uri: GREETING });
  check('a change in the meantime is told on the next stream', await hears(user, `updated ${GREETING}`, from));
  await leave(other);
}

/** The proxy's own subscription breaks: what may have been missed is told. */
async function brokenListen(user) {
  const from = user.told.items.length;
  await askRunner('mark');
  check('the streams of the server break', (await askRunner('break-streams-of', { side: 'upstream', verb: 'POST' })).broken > 0);
  for (const what of ['tools', 'prompts', 'resources', `updated ${GREETING}`]) check(`it is told what may have changed: ${what}`, await hears(user, what, from));
  await tells('and changes are told as before', user, () => changes(user, 'touch', { uri: GREETING }), [`updated ${GREETING}`]);
}

/** The SDK comes back by itself for a call whose stream broke. */
async function resumed(user) {
  const seen = [];
  let half;
  const begun = new Promise((resolve) => (half = resolve));
  const note = ({ progress }) => {
    seen.push(progress);
    if (progress === 3) half();
  };
  const counted = call(user, { tool: 'count', arguments: COUNT }, { onprogress: note });
  await begun;
  const { broken } = await askRunner('break-streams-of', { side: 'front', verb: 'POST' });
  check('the stream of a call breaks', broken > 0);
  check('the server does not hear of it', (await askRunner('runs-upstream', { tool: 'count' })).right);
  same('a broken call has its answer after all', textOf(await counted), `counted ${COUNT.steps}`);
  same('and all of its progress, once', seen, ALL_STEPS);
}

/** Another client object takes a call up where the first one left it, with the SDK's resumption token. */
async function handedOver() {
  const first = await connect({ token: 'handed' });
  const request = { method: 'tools/call', params: { name: 'count', arguments: COUNT, _meta: { progressToken: 'mine' } } };
  let token;
  let half;
  const begun = new Promise((resolve) => (half = resolve));
  const onresumptiontoken = (value) => {
    token = value;
    if (/-[3-9]$|[^0-9][3-9]$/.test(value)) half();
  };
  const lost = codeOf(first.client.request(request, CallToolResultSchema, { onresumptiontoken }));
  await Promise.race([begun, pause(COUNT.pause * 4)]);
  await first.client.close();
  await lost;
  await pause(COUNT.pause * COUNT.steps);
  const second = await connect({ token: 'handed', session: first.transport.sessionId });
  second.transport.setProtocolVersion(first.transport.protocolVersion);
  const result = await second.client.request(request, CallToolResultSchema, { resumptionToken: token, onresumptiontoken: () => {} });
  same('a call is taken up by its token in another client', textOf(result), `counted ${COUNT.steps}`);
  await leave(second);
}

/** By hand: the question that was lost with its stream comes again, and its answer counts. */
async function questionAgain() {
  const raw = await new Raw('vanished').begin({ elicitation: { form: {} } });
  const lost = await raw.request('tools/call', { name: 'ask_name', arguments: {} });
  await lost.messages.waitFor(({ method }) => method === 'elicitation/create', 5000);
  const [priming] = lost.events.items;
  same('the stream begins with an event that only has an id', [priming.data, typeof priming.id, typeof priming.retry], ['', 'string', 'string']);
  lost.abort();
  await pause(QUIET_MS);
  const again = await raw.get(priming.id);
  same('the stream is there again', again.status, 200);
  const question = await again.next(({ method }) => method === 'elicitation/create');
  check('the question comes again', question !== null, again.messages.items);
  const answered = await raw.post({ id: question.id, result: { action: 'accept', content: { name: 'Ada' } } });
  same('its answer is accepted', answered.status, 202);
  const result = await again.next(({ id }) => id === lost.id);
  same('and the call ends with it', textOf(result.result), 'Hello, Ada');
  const late = await raw.post({ id: question.id, result: { action: 'accept', content: { name: 'Eve' } } });
  check('an answer to nothing is no fault of the client', late.status === 202, late.status);
  await again.read;
  const over = await raw.get(again.lastId);
  check('there is nothing more on that stream', over.status === 405 || over.messages.items.length === 0, over.status);
  over.abort();
  await raw.bare('DELETE');
}

/** A client that goes away has not cancelled, and finds its answer later. */
async function answerLater() {
  const raw = await new Raw('away').begin({ sampling: {} });
  const lost = await raw.request('tools/call', { name: 'count', arguments: COUNT, _meta: { progressToken: 'away' } });
  await lost.next(({ params }) => params?.progress === 2);
  const [{ id: first }] = lost.events.items;
  lost.abort();
  check('a client that goes away has not cancelled', (await askRunner('runs-upstream', { tool: 'count' })).right);
  await pause(COUNT.pause * COUNT.steps + QUIET_MS);
  const again = await raw.get(first);
  const result = await again.next(({ id }) => id === lost.id);
  same('its answer waits for it', result && textOf(result.result), `counted ${COUNT.steps}`);
  const steps = again.messages.items.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);
  same('with all that was said before', steps, ALL_STEPS);
  await raw.bare('DELETE');
}

async function restarts(user) {
  const { sessionId } = user.transport;
  const from = user.told.items.length;
  await askRunner('mark');
  await askRunner('restart');
  same('a call after the restart of the server is answered', textOf(await changes(user, 'echo', { message: 'again' })), 'Echo: again');
  for (const what of ['tools', `updated ${GREETING}`]) check(`after the restart of the server, it is told what may have changed: ${what}`, await hears(user, what, from));
  if (!hasSessions) return;
  await askRunner('mark');
  const { left } = await askRunner('restart-proxy');
  same('nothing that the killed proxy had started is left', left, []);
  same('a call after the restart of the proxy is answered', textOf(await changes(user, 'echo', { message: 'still' })), 'Echo: still');
  same('in the same session', user.transport.sessionId, sessionId);
  const opened = await askRunner('opened-again', { session: sessionId });
  check('after the restart of the proxy, the SDK has its stream again', opened.right);
  const listens = await askRunner('listening', { token: 'token-streams', wanted: ['toolsListChanged'] });
  check('after the restart of the proxy, the server is listened to', listens.right, listens.detail);
  await pause(QUIET_MS);
  const again = user.told.items.length;
  await changes(user, 'add_tool', { name: 'last' });
  check('after the restart of the proxy, changes are told', await hears(user, 'tools', again));
}

await askRunner('mark');
const user = await connect({ token: 'streams' });
await step('lists', () => lists(user));
await step('subscriptions', () => subscriptions(user));
// Each client that starts a program, which starts a server, has a server of its own.
if (hasSessions || serverOverHttp) await step('two sessions of one user', () => together(user));
if (hasSessions) {
  await step('changes that nobody heard', unheard);
  await step('a stream of a session that breaks', () => brokenStream(user));
}
await step("the proxy's own stream breaks", () => brokenListen(user));
if (hasSessions) {
  await step('a call that is taken up again', () => resumed(user));
  await step('a call that another client takes up', handedOver);
  await step('a question that comes again', questionAgain);
  await step('an answer that waits', answerLater);
}
await step('restarts', () => restarts(user));
if (hasSessions) {
  const often = await askRunner('resumptions', { most: 2 });
  check('no client asks for a stream again and again', often.right, often.detail);
}
await step('the end', async () => {
  await leave(user);
  const seen = await askRunner('ended', { token: 'token-streams', marker: { tool: 'add_tool', name: 'last' } });
  check('with the session, its subscriptions at the server end', seen.right, seen.detail);
  if (way === 'stdio') same('nothing that was started is left', (await askRunner('all-gone')).left, []);
});
process.exit(0);
