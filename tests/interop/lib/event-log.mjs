// Owns: a growing list that one can wait on, within a bound.
// Does not own: what is in it.

export class EventLog {
  items = [];
  #waiters = new Set();

  push(item) {
    this.items.push(item);
    for (const waiter of [...this.#waiters]) waiter();
  }

  /** Calls `listener` with each item, the old ones first. */
  subscribe(listener) {
    let next = 0;
    const look = () => {
      while (next < this.items.length) {
        next += 1;
        listener(this.items[next - 1]);
      }
    };
    this.#waiters.add(look);
    look();
  }

  filter(predicate) {
    return this.items.filter(predicate);
  }

  /** The first item, old or new, that the predicate accepts; null when none has come within `timeoutMs`. */
  waitFor(predicate, timeoutMs) {
    return new Promise((resolve) => {
      const finish = (value) => {
        clearTimeout(timer);
        this.#waiters.delete(look);
        resolve(value);
      };
      let next = 0;
      const look = () => {
        for (; next < this.items.length; next += 1) {
          if (predicate(this.items[next])) return finish(this.items[next]);
        }
        return undefined;
      };
      const timer = setTimeout(() => finish(null), timeoutMs);
      this.#waiters.add(look);
      look();
    });
  }
}
