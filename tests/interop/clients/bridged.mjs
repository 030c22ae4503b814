// Owns: how the official TypeScript client 1.x is connected for the checks of legacy clients before a modern server, what it
// writes down of what it is asked and told, and requests by hand in a session of its own.
// Does not own: the transports (reach-legacy.mjs), the checks (bridged-*.mjs), or what is right (scenarios/bridged-target.mjs).

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { EventLog } from '../lib/event-log.mjs';
import { SseMessages } from '../lib/sse-messages.mjs';
import { reach, wayOf } from './reach-legacy.mjs';

const [givenUrl, targetText, mode] = process.argv.slice(2);
export const url = givenUrl;
export const target = JSON.parse(targetText);
/** Not so in a run without the proxy, where the server itself serves legacy sessions. */
export const bridged = mode === 'bridged';
export const way = wayOf(url);
/** Over anything else, a session is a connection, and there is nothing that could be done by hand or taken up again. */
export const hasSessions = way === 'http';
/** What only HTTP at the server shows: mirrored headers, and whose token a call came with. */
export const serverOverHttp = target.ways.upstream === 'http';
export const LATEST = '2025-11-25';

export const CALL_MS = 10_000;
const TOLD_MS = 6000;
const AT_ONCE_MS = 3000;

const NAME = { name: 'interop-typescript-bridged', version: '1.0.0' };
export const ALL = { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, roots: { listChanged: true } };
const SAMPLED = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' };
const USES = { role: 'assistant', content: [{ type: 'tool_use', id: 'use-1', name: 'lookup', input: { city: 'Paris' } }], model: 'none', stopReason: 'toolUse' };
const ROOTS = { roots: [{ uri: 'file:///ada', name: 'ada' }] };

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * A user with a client: what it was `asked` and `told`, in order. Its answers are `answerTo`: (message, extra, schema) -> answer;
 * it waits with them until it was asked `gate` things in all. `revision`: it knows nothing newer.
 */
export async function connect({ token = 'main', capabilities = ALL, revision = LATEST, session } = {}) {
  const client = new Client(NAME, { capabilities });
  const user = { client, token, asked: new EventLog(), told: new EventLog(), answerTo: async () => undefined, sample: async () => undefined, gate: 0 };
  addAnswers(user, capabilities);
  addEars(user);
  user.transport = asking(revision, reach(url, `token-${token}`, { sessionId: session }));
  client.onerror = () => {};
  await client.connect(user.transport);
  return user;
}

/** Ends the session, with all that is held for it. */
export async function leave({ client, transport }) {
  await transport.terminateSession?.();
  await client.close();
}

function addAnswers(user, capabilities) {
  const { client, asked } = user;
  const ask = async (question) => {
    asked.push(question);
    await asked.waitFor(() => asked.items.length >= user.gate, AT_ONCE_MS);
  };
  if (capabilities.elicitation) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }, extra) => {
      const { message, mode: how, url: page, elicitationId, requestedSchema } = params;
      await ask(how === 'url' ? { kind: 'url', message, url: page, elicitationId } : { kind: 'form', message, requestedSchema });
      return user.answerTo(message, extra, requestedSchema);
    });
  }
  if (capabilities.sampling) {
    client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => {
      await ask({ kind: 'sampling', message: textsOf(params.messages.map(({ content }) => content)) });
      return (await user.sample()) ?? (params.tools ? USES : SAMPLED);
    });
  }
  if (capabilities.roots) {
    client.setRequestHandler(ListRootsRequestSchema, async () => {
      await ask({ kind: 'roots' });
      return ROOTS;
    });
  }
}

function addEars({ client, told }) {
  const hears = (schema, what) => client.setNotificationHandler(schema, ({ params }) => told.push(what(params)));
  hears(ToolListChangedNotificationSchema, () => 'tools');
  hears(PromptListChangedNotificationSchema, () => 'prompts');
  hears(ResourceListChangedNotificationSchema, () => 'resources');
  hears(ResourceUpdatedNotificationSchema, ({ uri }) => `updated ${uri}`);
  hears(ElicitationCompleteNotificationSchema, ({ elicitationId }) => `completed ${elicitationId}`);
  hears(LoggingMessageNotificationSchema, ({ level, data }) => `${level}: ${data}`);
}

/** Whether the user is told that, counted from `from` on. */
export async function hears({ told }, what, from = 0) {
  const heard = () => told.items.slice(from).includes(what);
  await told.waitFor(heard, TOLD_MS);
  return heard();
}

/** The SDK always asks for its newest revision; what is agreed on is the transport's to know. */
function asking(revision, transport) {
  const send = transport.send.bind(transport);
  const older = (message) => (message.method === 'initialize' ? { ...message, params: { ...message.params, protocolVersion: revision } } : message);
  transport.send = (message, options) => send(older(message), options);
  if (transport.setProtocolVersion === undefined) {
    transport.setProtocolVersion = (version) => {
      transport.protocolVersion = version;
    };
  }
  return transport;
}

export const textsOf = (blocks) => blocks.flat().map((block) => block.text ?? '').join('\n');
export const textOf = (result) => textsOf(result.content ?? result.contents ?? result.messages.map(({ content }) => content));
export const codeOf = (promise) => promise.then((result) => result, ({ code }) => code);

/** What was asked, without what each asking makes up anew, in an order that does not depend on it. */
export const questions = (asked) => asked.map(({ kind, message, url: page }) => ({ kind, ...(message !== undefined && { message }), ...(page !== undefined && { url: page }) }));
export const inOrder = (list) => list.map((item) => JSON.stringify(item)).sort();

export function call({ client }, { tool, prompt, resource, arguments: args = {} }, options) {
  if (tool !== undefined) return client.callTool({ name: tool, arguments: args }, undefined, { timeout: CALL_MS, ...options });
  if (prompt !== undefined) return client.getPrompt({ name: prompt, arguments: args }, { timeout: CALL_MS, ...options });
  return client.readResource({ uri: resource }, { timeout: CALL_MS, ...options });
}

/** A session by hand: no SDK's way of doing things is between the checks and the wire. */
export class Raw {
  #id = 0;

  constructor(token = 'raw') {
    this.headers = { Authorization: `Bearer token-${token}` };
  }

  async begin(capabilities = {}, revision = LATEST) {
    const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'by-hand', version: '1.0.0' } };
    const { headers } = await this.post({ id: 'begin', method: 'initialize', params });
    this.headers = { ...this.headers, 'Mcp-Session-Id': headers.get('mcp-session-id'), 'MCP-Protocol-Version': revision };
    await this.post({ method: 'notifications/initialized' });
    return this;
  }

  get session() {
    return this.headers['Mcp-Session-Id'];
  }

  post(message, { headers = this.headers, signal } = {}) {
    return fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(Array.isArray(message) ? message : { jsonrpc: '2.0', ...message }),
      signal,
    });
  }

  bare(method, headers = this.headers) {
    return fetch(url, { method, headers: { Accept: 'text/event-stream', ...headers } });
  }

  /** Sends a request and gives its stream. */
  async request(method, params) {
    this.#id += 1;
    const abort = new AbortController();
    const response = await this.post({ id: this.#id, method, params }, { signal: abort.signal });
    return new Stream(response, abort, this.#id);
  }

  async get(lastEventId) {
    const abort = new AbortController();
    const headers = { Accept: 'text/event-stream', ...this.headers, ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }) };
    return new Stream(await fetch(url, { headers, signal: abort.signal }), abort);
  }
}

/** An event stream that is read as it comes: its `events` and its `messages`. */
class Stream {
  events = new EventLog();
  messages = new EventLog();

  constructor(response, abort, id) {
    this.status = response.status;
    this.type = response.headers.get('content-type') ?? '';
    this.id = id;
    this.abort = () => abort.abort();
    this.read = this.#read(response).catch(() => {});
  }

  async #read(response) {
    if (!this.type.startsWith('text/event-stream')) {
      this.messages.push(JSON.parse(await response.text()));
      return;
    }
    const found = new SseMessages((message) => this.messages.push(message), (event) => this.events.push(event));
    for await (const chunk of response.body) found.push(chunk);
  }

  /** The first message that the test accepts, or null. */
  next(test, ms = TOLD_MS) {
    return this.messages.waitFor(test, ms);
  }

  answer() {
    return this.next(({ id, method }) => method === undefined && id === this.id);
  }

  get lastId() {
    return this.events.items.filter(({ id }) => id !== undefined).at(-1)?.id;
  }
}
