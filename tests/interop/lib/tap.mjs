// Owns: a recording reverse proxy for one leg of the wire. It passes bytes on as they come, and keeps the JSON-RPC
// messages of both directions with the HTTP exchange that carried them.
// Does not own: any judgement about what it saw (wire-check.mjs, the scenarios).
//
// Each incoming connection has one outgoing connection of its own, and the end of either ends the other, so that a
// restart of the server looks to the client just as it would without the tap.

import http from 'node:http';

import { EventLog } from './event-log.mjs';
import { SseMessages } from './sse-messages.mjs';

const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-connection', 'te', 'trailer'];

export class Tap {
  kind = 'http';
  /** Each entry: {exchange, direction: 'request'|'response', message, requestMethod?}. */
  entries = new EventLog();
  /** Each entry: {method, path, session, headers, status, responseHeaders, events, epoch, aborted, over}. */
  exchanges = [];
  /** Counted up by who restarts what is in front of this tap, so that its exchanges can be told apart. */
  epoch = 0;
  /** Each exchange again, once its status is known. */
  opened = new EventLog();
  /** Each exchange again, once it is over. */
  endings = new EventLog();
  /** The event streams that are open: the exchange, and the connection of the client. */
  #streams = new Map();
  /** Session and id of a request -> its method, for answers that come on another stream. */
  #asked = new Map();
  #server;

  static async start({ targetPort, label }) {
    const tap = new Tap();
    tap.label = label;
    tap.targetPort = targetPort;
    tap.#server = http.createServer((request, response) => tap.#relay(request, response));
    tap.#server.on('connection', (socket) => {
      socket.tapAgent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      socket.once('close', () => socket.tapHeld || socket.tapAgent.destroy());
      socket.on('error', () => socket.destroy());
    });
    await new Promise((resolve, reject) => {
      tap.#server.once('error', reject);
      tap.#server.listen(0, '127.0.0.1', resolve);
    });
    tap.port = tap.#server.address().port;
    return tap;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** Where the event stream of the old HTTP+SSE is. */
  get sseUrl() {
    return `http://127.0.0.1:${this.port}/sse`;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Breaks the open streams (GET) for the client alone; the server takes them for alive for another `holdMs`. */
  halfBreakStreams(holdMs) {
    const held = [...this.#streams].filter(([{ method }]) => method === 'GET').map(([, clientSocket]) => clientSocket);
    for (const clientSocket of held) {
      clientSocket.tapHeld = true;
      clientSocket.destroy();
    }
    setTimeout(() => held.forEach((clientSocket) => clientSocket.tapAgent.destroy()), holdMs);
    return held.length;
  }

  /** Breaks the open event streams of that verb for both sides, as when the network goes away. */
  breakStreams(verb) {
    const broken = [...this.#streams].filter(([{ method }]) => method === verb);
    broken.forEach(([, clientSocket]) => clientSocket.destroy());
    return broken.length;
  }

  #relay(request, response) {
    const asked = { method: request.method, path: request.url, session: sessionOf(request), headers: request.headers };
    const exchange = { ...asked, status: null, responseHeaders: {}, events: [], epoch: this.epoch, aborted: false, over: false };
    this.exchanges.push(exchange);
    const methods = new Map();
    const clientSocket = request.socket;
    const upstream = http.request({
      host: '127.0.0.1',
      port: this.targetPort,
      method: request.method,
      path: request.url,
      headers: passedOn(request.headers, { host: `127.0.0.1:${this.targetPort}` }),
      agent: clientSocket.tapAgent,
    });
    upstream.on('socket', (socket) => {
      if (socket.tapBound === clientSocket) return;
      socket.tapBound = clientSocket;
      socket.once('close', () => clientSocket.destroy());
    });
    upstream.on('error', () => clientSocket.destroy());
    response.once('close', () => {
      exchange.over = true;
      this.endings.push(exchange);
      this.#streams.delete(exchange);
      if (response.writableFinished) return;
      exchange.aborted = true;
      if (!clientSocket.tapHeld) upstream.destroy();
    });

    const body = [];
    request.on('data', (chunk) => {
      body.push(chunk);
      upstream.write(chunk);
    });
    request.on('end', () => {
      for (const message of messagesOf(Buffer.concat(body))) {
        if (message?.method !== undefined && 'id' in message) {
          methods.set(message.id, message.method);
          this.#asked.set(keyOf(exchange, message), message.method);
        }
        this.entries.push({ exchange, direction: 'request', message });
      }
      upstream.end();
    });
    upstream.on('response', (answer) => {
      exchange.status = answer.statusCode;
      exchange.responseHeaders = answer.headers;
      exchange.session ??= answer.headers['mcp-session-id'];
      this.opened.push(exchange);
      response.writeHead(answer.statusCode, passedOn(answer.headers));
      response.flushHeaders();
      this.#record(exchange, methods, answer);
      if (isStream(answer)) this.#streams.set(exchange, clientSocket);
      answer.pipe(response);
    });
  }

  #record(exchange, methods, answer) {
    const note = (message) => {
      const known = () => methods.get(message?.id) ?? this.#asked.get(keyOf(exchange, message));
      const requestMethod = message?.method === undefined ? known() : undefined;
      this.entries.push({ exchange, direction: 'response', message, requestMethod });
    };
    if (isStream(answer)) {
      const events = new SseMessages(note, (event) => {
        exchange.events.push(event);
        exchange.session ??= sessionInPath(event.data);
      });
      answer.on('data', (chunk) => events.push(chunk));
    } else {
      const body = [];
      answer.on('data', (chunk) => body.push(chunk));
      answer.on('end', () => messagesOf(Buffer.concat(body)).forEach(note));
    }
  }
}

function isStream({ headers }) {
  return (headers['content-type'] ?? '').startsWith('text/event-stream');
}

function keyOf({ session }, message) {
  return `${session} ${JSON.stringify(message?.id)}`;
}

/** By the header of Streamable HTTP, or the query of HTTP+SSE; there, the first event of a stream says which session it is. */
function sessionOf({ headers, url }) {
  return headers['mcp-session-id'] ?? sessionInPath(url);
}

function sessionInPath(path) {
  return /^[^{]*[?&]session(?:_?id)?=([^&]+)/i.exec(path)?.[1];
}

function passedOn(headers, overrides = {}) {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  return { ...Object.fromEntries(kept), ...overrides };
}

/** The messages of a JSON body; a body that is not JSON has none. */
function messagesOf(bytes) {
  if (bytes.length === 0) return [];
  try {
    const value = JSON.parse(bytes.toString('utf8'));
    return Array.isArray(value) ? value : [value];
  } catch {
    return [];
  }
}
