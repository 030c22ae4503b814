// Owns: a client that takes answers as the texts that they are, in either era, over Streamable HTTP or from a program that it
// starts, for what an SDK would parse away.
// Does not own: any judgement about the texts (scenarios/).

import { Child } from './child.mjs';

const ANSWER_MS = 30_000;
const INFO = { name: 'interop-raw', version: '1.0.0' };
export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';

export class RawClient {
  #send;
  #revision;
  #last = 0;

  constructor(revision, send, close = async () => {}) {
    this.#revision = revision;
    this.#send = send;
    this.close = close;
  }

  /** A client of the server at `url`, ready for requests. */
  static async at(url, revision) {
    const legacy = revision !== MODERN;
    const session = {};
    const client = new RawClient(revision, async (message) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...session };
      if (message.method !== 'initialize') headers['mcp-protocol-version'] = revision;
      if (!legacy) headers['mcp-method'] = message.method;
      if (!legacy && message.params?.name !== undefined) headers['mcp-name'] = message.params.name;
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message), signal: AbortSignal.timeout(ANSWER_MS) });
      const body = await response.text();
      if (response.headers.has('mcp-session-id')) session['mcp-session-id'] = response.headers.get('mcp-session-id');
      const stream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
      return stream ? dataOf(body).find((text) => answers(text, message.id)) : body;
    });
    if (legacy) await client.#initialize();
    return client;
  }

  /** A client of a program, ready for requests. */
  static async of(name, [command, ...args], revision, options = {}) {
    const child = new Child(name, command, args, options);
    const send = async (message) => {
      child.process.stdin.write(`${JSON.stringify(message)}\n`);
      if (message.id === undefined) return undefined;
      const line = await child.lines.waitFor(({ stream, text }) => stream === 'stdout' && answers(text, message.id), ANSWER_MS);
      if (line === null) throw new Error(`${name} did not answer ${message.method}:\n${child.tail()}`);
      return line.text;
    };
    const client = new RawClient(revision, send, () => child.stop());
    if (revision !== MODERN) await client.#initialize();
    return client;
  }

  async #initialize() {
    await this.ask('initialize', { protocolVersion: this.#revision, capabilities: {}, clientInfo: INFO });
    await this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }

  /** The text of the answer, an error or not. */
  async ask(method, params = {}) {
    this.#last += 1;
    const meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientInfo': INFO,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const own = this.#revision === MODERN ? { ...params, _meta: meta } : params;
    const text = await this.#send({ jsonrpc: '2.0', id: this.#last, method, params: own });
    if (text === undefined) throw new Error(`${method} was not answered`);
    return text;
  }

  /** The texts of the results of `tools/list`, page by page, and all the tools that they hold. */
  async list() {
    const results = [];
    const tools = [];
    for (let cursor; results.length === 0 || cursor !== undefined; ) {
      const text = await this.ask('tools/list', cursor === undefined ? {} : { cursor });
      const { result, error } = JSON.parse(text);
      if (error !== undefined) throw new Error(`tools/list: ${error.code} ${error.message}`);
      results.push(resultOf(text));
      tools.push(...result.tools);
      cursor = result.nextCursor;
    }
    return { results, tools };
  }
}

/** The `result` of a message, byte for byte. */
export function resultOf(text) {
  let depth = 0;
  let key = null;
  let start = null;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/gs)) {
    if (depth === 1 && start !== null && (token === ',' || token === '}')) return text.slice(start, index).trim();
    if (depth === 1 && token[0] === '"' && start === null) key = token;
    if (depth === 1 && token === ':' && key === '"result"') start = index + 1;
    if ('{['.includes(token)) depth += 1;
    if ('}]'.includes(token)) depth -= 1;
  }
  return null;
}

/** The data of the events of a stream. */
function dataOf(stream) {
  const events = stream.split(/(?:\r\n|\r|\n){2}/);
  return events.map((event) => event.split(/\r\n|\r|\n/).filter((line) => line.startsWith('data:')).map((line) => line.replace(/^data: ?/, '')).join('\n'));
}

function answers(text, id) {
  try {
    const message = JSON.parse(text);
    return message.id === id && message.method === undefined;
  } catch {
    return false;
  }
}
