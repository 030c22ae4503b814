// Owns: finding the events and the JSON-RPC messages in the bytes of one event stream, for recording only.
// Does not own: passing the bytes on; they have gone by untouched already.

export class SseMessages {
  #decoder = new TextDecoder();
  #buffer = '';
  #data = [];
  #fields = {};
  #onMessage;
  #onEvent;

  /** `onEvent` is told of each event that is dispatched: its `id` and `retry`, if any, and its `data`. */
  constructor(onMessage, onEvent = () => {}) {
    this.#onMessage = onMessage;
    this.#onEvent = onEvent;
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
      const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (name === 'data') this.#data.push(value);
      else if (name === 'id' || name === 'retry') this.#fields[name] = value;
      return;
    }
    const data = this.#data.join('\n');
    if (this.#data.length > 0) this.#onEvent({ ...this.#fields, data });
    this.#data = [];
    this.#fields = {};
    if (data === '') return;
    try {
      this.#onMessage(JSON.parse(data));
    } catch {
      // Events that hold no JSON (keep-alive events of some servers) are no messages.
    }
  }
}
