/** Entries of a push that were refused for one reason. */
export interface RefusedKind {
  readonly reason: string;
  /** Refused streams or entries: how often the error occurred. */
  errors: number;
  entries: number;
  bytes: number;
  /** Text of the first one. */
  readonly message: string;
}

/**
 * Collects what validation refuses, by reason. A text is made for the first offender of each reason only, so that a push
 * of a million bad entries is refused in as much time as it takes to count them.
 */
export class Refusals {
  readonly #kinds = new Map<string, RefusedKind>();

  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  get kinds(): Iterable<RefusedKind> {
    return this.#kinds.values();
  }

  /** Counts one error that refuses `entries` entries of `bytes` bytes. */
  add(reason: string, entries: number, bytes: number, message: () => string): void {
    const kind = this.#kinds.get(reason);
    if (kind === undefined) {
      this.#kinds.set(reason, { reason, errors: 1, entries, bytes, message: message() });
      return;
    }
    kind.errors++;
    kind.entries += entries;
    kind.bytes += bytes;
  }

  /** The text of the only error, else each kind with its count. */
  text(): string {
    const kinds = [...this.#kinds.values()];
    if (kinds.length === 1 && kinds[0]?.errors === 1) return kinds[0].message;
    return kinds.map((kind) => `${kind.errors} errors like: ${kind.message}`).join("; ");
  }
}
