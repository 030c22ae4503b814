// Owns: the lines that a run prints, the two counters, and the closing line.
// Does not own: deciding whether a check is right.

export class Report {
  passed = 0;
  failed = 0;
  #section = '';

  section(name) {
    this.#section = name;
    console.log(`\n# ${name}`);
  }

  check(name, right, detail = '') {
    if (right) {
      this.passed += 1;
      console.log(`ok    ${name}`);
    } else {
      this.failed += 1;
      console.log(`FAIL  ${this.#section}: ${name}${detail === '' ? '' : `\n      ${String(detail).replaceAll('\n', '\n      ')}`}`);
    }
    return right;
  }

  note(text) {
    console.log(`note  ${text}`);
  }

  /** Prints the closing line and returns the exit code. A run without a check has failed. */
  close() {
    console.log(`\n${this.passed} passed, ${this.failed} failed`);
    return this.failed === 0 && this.passed > 0 ? 0 : 1;
  }
}
