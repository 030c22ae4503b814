// Owns: a server and a file that nobody may touch, and whether anybody did.
// Does not own: the schemas that name them (scenarios/).

import { mkdtempSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';

/** Long before the file's last change, so that reading it moves its time of access even where that is moved lazily. */
const LONG_AGO = new Date(1_000_000_000_000);
const TEXT = '{"type":"object"}';

export class Canary {
  connections = 0;
  #server;

  static async start(cache) {
    const canary = new Canary();
    canary.#server = net.createServer((socket) => {
      canary.connections += 1;
      socket.on('error', () => {});
      socket.end(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${TEXT.length}\r\nconnection: close\r\n\r\n${TEXT}`);
    });
    await new Promise((resolve, reject) => {
      canary.#server.once('error', reject);
      canary.#server.listen(0, '127.0.0.1', resolve);
    });
    canary.authority = `127.0.0.1:${canary.#server.address().port}`;
    const folder = mkdtempSync(join(cache, 'canary-'));
    canary.file = untouched(join(folder, 'canary.json'));
    const other = untouched(join(folder, 'other.json'));
    readFileSync(other);
    /** Whether the file system keeps times of access at all. */
    canary.tells = wasRead(other);
    return canary;
  }

  /** null where nobody can know. */
  get fileRead() {
    return this.tells ? wasRead(this.file) : null;
  }

  async stop() {
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function untouched(file) {
  writeFileSync(file, TEXT);
  utimesSync(file, LONG_AGO, new Date());
  return file;
}

function wasRead(file) {
  return statSync(file).atimeMs > LONG_AGO.getTime() + 1000;
}
