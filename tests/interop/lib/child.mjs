// Owns: one started process: its output lines, waiting for one of them, and its end by its own pid.
// Does not own: what the process is for.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { EventLog } from './event-log.mjs';

const GRACE_MS = 5000;
const running = new Set();

export class Child {
  /** Lines of both outputs, each {stream, text}. */
  lines = new EventLog();

  constructor(name, command, args, { env = {}, cwd } = {}) {
    this.name = name;
    this.process = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
    running.add(this);
    this.process.stdin.on('error', () => {});
    for (const stream of ['stdout', 'stderr']) {
      createInterface({ input: this.process[stream] }).on('line', (text) => this.lines.push({ stream, text }));
    }
    /** Resolves to {code, signal} when the process has ended and its output has been read. */
    this.ended = new Promise((resolve) => {
      this.process.once('error', (error) => {
        running.delete(this);
        this.lines.push({ stream: 'stderr', text: String(error) });
        resolve({ code: -1, signal: null });
      });
      this.process.once('close', (code, signal) => {
        running.delete(this);
        resolve({ code, signal });
      });
    });
  }

  /** Waits for a line that matches; fails when the process ends first or the time is over. */
  async waitForLine(pattern, timeoutMs) {
    const end = this.ended.then(() => 'ended');
    const line = await Promise.race([this.lines.waitFor((entry) => pattern.test(entry.text), timeoutMs), end]);
    if (line === 'ended') throw new Error(`${this.name} ended before it was ready:\n${this.tail()}`);
    if (line === null) throw new Error(`${this.name} said nothing like ${pattern} within ${timeoutMs} ms:\n${this.tail()}`);
    return line.text;
  }

  /** Resolves to the exit code, or kills the process and throws when the time is over. */
  async exitWithin(timeoutMs) {
    let timer;
    const over = new Promise((resolve) => {
      timer = setTimeout(() => resolve(null), timeoutMs);
    });
    const end = await Promise.race([this.ended, over]);
    clearTimeout(timer);
    if (end !== null) return end.code;
    await this.stop('SIGKILL');
    throw new Error(`${this.name} was still running after ${timeoutMs} ms:\n${this.tail()}`);
  }

  async stop(signal = 'SIGTERM') {
    if (!running.has(this)) return;
    this.process.kill(signal);
    const timer = setTimeout(() => this.process.kill('SIGKILL'), GRACE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  tail(count = 15) {
    return this.lines.items
      .slice(-count)
      .map((line) => `    | ${line.text}`)
      .join('\n');
  }
}

/** Ends what is still running, for an exit that no scenario foresaw. */
export function killAllStarted() {
  for (const child of running) child.process.kill('SIGKILL');
}
