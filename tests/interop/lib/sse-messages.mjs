// Owns: finding the JSON-RPC messages in the bytes of one event stream, for recording only.
// Does not own: passing the bytes on; they have gone by untouched already.

export class SseMessages {
  #decoder = new TextDecoder();
  #buffer = '';
  #data = [];
  #onMessage;

  constructor(onMessage) {
    this.#onMessage = onMessage;
  }

  push(chunk) {
    this.#buffer += this.#decoder.decode(chunk, { stream: true });
    // A CR at the very end may be the first half of a CRLF; it waits for the next chunk.
    const complete = this.#buffer.endsWith('\r') ? this.#buffer.slice(0, -1) : this.#buffer;
    const lines = complete.split(/\r\n|\r|\n/);
    this.#buffer = lines.pop() + this.#buffer.slice(complete.length);
    lines.forEach((line) => this.#line(line));
  }

  #line(line) {
    if (line !== '') {
      if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
      return;
    }
    const data = this.#data.join('\n');
    this.#data = [];
    if (data === '') return;
    try {
      this.#onMessage(JSON.parse(data));
    } catch {
      // Events that hold no JSON (keep-alive events of some servers) are no messages.
    }
  }
}
