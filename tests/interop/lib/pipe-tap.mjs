// Owns: what went over the pipes of stdio programs, recorded by the program that stands before each of them
// (fixtures/tee.mjs), in the terms of the recorder of HTTP legs (tap.mjs): a pipe is one exchange that is never answered as
// such and lasts as long as its program.
// Does not own: any judgement about what it saw (wire-*.mjs, the scenarios), or the starting of the programs.

import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, watch } from 'node:fs';
import { join } from 'node:path';

import { EventLog } from './event-log.mjs';
import { cache, here } from './paths.mjs';

const CHUNK = 1 << 16;
const GONE_MS = 5000;
const POLL_MS = 10;

export class PipeTap {
  kind = 'pipe';
  /** Each entry: {exchange, direction: 'request'|'response', message, requestMethod?}; `request` is what went to the program. */
  entries = new EventLog();
  /** Each entry: {session, program, tee, env, over, code, signal, ...} and what an exchange of the other recorder has. */
  exchanges = [];
  epoch = 0;
  opened = new EventLog();
  endings = new EventLog();
  /** What the programs wrote to standard error, each {stream, text}. */
  lines = new EventLog();
  /** Lines that are no message, each {way: 'in'|'out', text}. */
  junk = [];
  #folder;
  #files = new Map();
  #watcher;

  static start(node) {
    const tap = new PipeTap();
    mkdirSync(cache, { recursive: true });
    tap.#folder = mkdtempSync(join(cache, 'pipes-'));
    tap.node = node;
    tap.#watcher = watch(tap.#folder, () => tap.look());
    return tap;
  }

  /** The command that starts the same program and records it. */
  command(command) {
    return [this.node, join(here, 'fixtures/tee.mjs'), this.#folder, ...command];
  }

  /** The pipes whose program has not ended. */
  get alive() {
    this.look();
    for (const pipe of this.exchanges.filter(({ over, tee, parent }) => !over && !exists(tee, parent))) this.#end(pipe, { code: null, signal: 'SIGKILL' });
    return this.exchanges.filter(({ over }) => !over);
  }

  /** Takes in what is new. A line is in its file before its receiver has it, so nothing that happened is missing then. */
  look() {
    for (const name of readdirSync(this.#folder)) {
      if (!this.#files.has(name)) this.#files.set(name, { rest: '', at: 0, pipe: null, decoder: new TextDecoder() });
      this.#read(name, this.#files.get(name));
    }
  }

  /** Kills the programs, not who stands before them, and waits until both are gone. Gives how many there were. */
  async kill(signal = 'SIGKILL') {
    const killed = this.alive;
    for (const { program } of killed) process.kill(program, signal);
    await this.gone(killed);
    return killed.length;
  }

  /**
   * Waits until these programs, and who stands before them, have ended and were buried by who started them; gives those that are
   * left. `direct`: who stands before them is all that the end of its parent could have ended.
   */
  async gone(pipes = this.exchanges, { direct = false } = {}) {
    const over = Date.now() + GONE_MS;
    const left = () => pipes.filter(({ program, tee, parent }) => exists(tee, parent) || (!direct && exists(program, tee)));
    // There is no event to wait for: the end of a process is only told to its parent.
    while (left().length > 0 && Date.now() < over) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    this.look();
    return left();
  }

  async stop() {
    this.look();
    for (const { program } of this.exchanges.filter((pipe) => exists(pipe.program, pipe.tee))) process.kill(program, 'SIGKILL');
    await this.gone();
    this.#watcher.close();
  }

  #read(name, file) {
    const descriptor = openSync(join(this.#folder, name), 'r');
    const buffer = Buffer.alloc(CHUNK);
    for (let length = 1; length > 0; file.at += length) {
      length = readSync(descriptor, buffer, 0, CHUNK, file.at);
      file.rest += file.decoder.decode(buffer.subarray(0, length), { stream: true });
    }
    closeSync(descriptor);
    const records = file.rest.split('\n');
    file.rest = records.pop();
    for (const record of records) this.#take(name, file, JSON.parse(record));
  }

  #take(name, file, { way, text, ...more }) {
    if (way === 'start') file.pipe = this.#begin(name, more);
    else if (way === 'end') this.#end(file.pipe, more);
    else if (way === 'err') this.lines.push({ stream: 'stderr', text });
    else if (way === 'eof') file.pipe.eof = true;
    else this.#note(file.pipe, way, text);
  }

  #begin(name, { pid, parent, env }) {
    const tee = Number(name.split('.')[0]);
    const pipe = { session: `pipe ${tee}`, program: pid, tee, parent, env, asked: { in: new Map(), out: new Map() } };
    Object.assign(pipe, { method: 'PIPE', path: '', headers: {}, status: 200, responseHeaders: {}, events: [], epoch: this.epoch, aborted: false, over: false, eof: false });
    this.exchanges.push(pipe);
    this.opened.push(pipe);
    return pipe;
  }

  #end(pipe, { code, signal }) {
    Object.assign(pipe, { over: true, code, signal });
    this.endings.push(pipe);
  }

  #note(pipe, way, text) {
    const messages = messagesOf(text);
    if (messages.length !== 1) this.junk.push({ way, text });
    for (const message of messages) {
      const isCall = message.method !== undefined;
      if (isCall && 'id' in message) pipe.asked[way].set(JSON.stringify(message.id), message.method);
      const requestMethod = isCall ? undefined : pipe.asked[way === 'in' ? 'out' : 'in'].get(JSON.stringify(message.id));
      this.entries.push({ exchange: pipe, direction: way === 'in' ? 'request' : 'response', message, requestMethod });
    }
  }
}

/** Whether there is such a process. One that only waits to be buried counts if that is its `parent`'s to do, and not the system's. */
function exists(pid, parent) {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const [, state, ppid] = /\) (\S) (\d+)/.exec(statOf(pid)) ?? [];
  return state !== 'Z' || Number(ppid) === parent;
}

/** Empty where there is no such file. */
function statOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return '';
  }
}

/** A line that is no object of JSON holds no message, and an array is not one. */
function messagesOf(line) {
  try {
    const value = JSON.parse(line);
    return typeof value === 'object' && value !== null ? [value].flat() : [];
  } catch {
    return [];
  }
}
