// Owns: seeing whom processes of one program talk to, and which files they open: by strace where it is there and may, else by
// looking at the sockets of one of them again and again, which sees no files and may miss what is very short.
// Does not own: whom they may talk to (scenarios/).

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const OVER_MS = 5000;
const POLL_MS = 10;

export class Watched {
  /** The program to start in the place of `binary`. */
  binary;
  how;
  #folder;
  #peers = new Set();
  #timer;

  constructor(binary, cache) {
    const traces = spawnSync('strace', ['-D', '-f', '-q', '-o', '/dev/null', 'true'], { stdio: 'ignore', timeout: 10_000 }).status === 0;
    this.how = traces ? 'strace' : 'its sockets, looked at again and again';
    this.binary = binary;
    if (!traces) return;
    this.#folder = mkdtempSync(join(cache, 'watched-'));
    this.binary = join(this.#folder, 'mcp-janus');
    const trace = '-D -f -q -s 512 -e trace=connect,sendto,sendmsg,sendmmsg,open,openat,openat2';
    writeFileSync(this.binary, `#!/bin/sh\nexec strace ${trace} -o ${quoted(join(this.#folder, 'trace'))}.$$ ${quoted(binary)} "$@"\n`);
    chmodSync(this.binary, 0o755);
  }

  /** Begins to look at a process that was started with `binary`; with strace all are looked at. */
  follow(pid) {
    if (this.#folder !== undefined) return;
    this.#timer = setInterval(() => peersOf(pid).forEach((peer) => this.#peers.add(peer)), POLL_MS);
  }

  /** Once all have ended: the peers that they connected or sent to, as `address:port`, and the files (null: not seen). */
  async seen() {
    if (this.#folder === undefined) {
      clearInterval(this.#timer);
      return { peers: [...this.#peers], files: null };
    }
    const over = Date.now() + OVER_MS;
    // There is no event to wait for: the tracer is nobody's child here.
    while (!this.#traces().every((trace) => /\+\+\+ (exited|killed)/.test(trace)) && Date.now() < over) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const lines = this.#traces().flatMap((trace) => trace.split('\n'));
    const peers = lines.filter((line) => /^\d+ +(connect|send\w+)\(/.test(line)).flatMap((line) => peersIn(line));
    const files = lines.flatMap((line) => /^\d+ +open\w*\([^"]*"((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? []);
    return { peers: [...new Set(peers)], files: [...new Set(files)] };
  }

  #traces() {
    const traces = readdirSync(this.#folder).filter((name) => name.startsWith('trace.'));
    return traces.map((name) => readFileSync(join(this.#folder, name), 'utf8'));
  }
}

/** Every address that a call names; what is no IP address is given as it stands. */
function peersIn(line) {
  return [...line.matchAll(/\{sa_family=(\w+)([^}]*)\}/g)].map(([, family, rest]) => {
    const address = /inet_addr\("([^"]+)"\)/.exec(rest)?.[1] ?? /inet_pton\(AF_INET6, "([^"]+)"/.exec(rest)?.[1];
    const port = /sin6?_port=htons\((\d+)\)/.exec(rest)?.[1];
    return address === undefined ? `${family}${rest}` : `${address}:${port}`;
  });
}

/** The other ends of a process's sockets, as far as it was the one that connected. */
function peersOf(pid) {
  try {
    const own = new Set(readdirSync(`/proc/${pid}/fd`).flatMap((fd) => /^socket:\[(\d+)\]$/.exec(linkOf(pid, fd))?.[1] ?? []));
    const rows = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((kind) =>
      readFileSync(`/proc/${pid}/net/${kind}`, 'utf8')
        .split('\n')
        .slice(1)
        .map((row) => row.trim().split(/\s+/))
        .filter((row) => own.has(row[9])),
    );
    const listening = new Set(rows.filter((row) => row[3] === '0A').map((row) => row[1].split(':')[1]));
    const connected = rows.filter((row) => !/^0+:0+$/.test(row[2]) && !listening.has(row[1].split(':')[1]));
    return connected.map((row) => addressOf(row[2]));
  } catch {
    return [];
  }
}

function linkOf(pid, fd) {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return '';
  }
}

function addressOf(hex) {
  const [address, port] = hex.split(':');
  const bytes = address.length === 8 ? address.match(/../g).reverse().map((byte) => parseInt(byte, 16)).join('.') : address;
  return `${bytes}:${parseInt(port, 16)}`;
}

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;
