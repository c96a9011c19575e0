import { type Line, streamOf } from "../api/lines.js";
import { keyOf } from "./paging.js";

/**
 * The last lines of a live view. Lines that a new connection brings again are dropped, by time, stream, text and count; when it
 * brings none that is known, a line in the list marks that some may be missing.
 */
export class LiveRing {
  readonly #max: number;
  #lines: Line[] = [];
  #waiting: Line[] = [];
  /** Lines that the next connection may bring again, and how often. */
  #known = new Map<string, number>();
  #paused = false;
  /** Lines that had to go before somebody saw them. */
  lost = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#lines.length;
  }

  /** Lines that wait while the view stands still. */
  get waiting(): number {
    return this.#waiting.length;
  }

  at(index: number): Line | undefined {
    return this.#lines[index];
  }

  set paused(paused: boolean) {
    this.#paused = paused;
  }

  /** Remembers what a new connection may bring again: all that is later than a time. */
  reconnect(sinceNs: string): void {
    this.#known = new Map();
    for (const line of [...this.#lines, ...this.#waiting]) {
      if (line.ns < sinceNs || line.note) continue;
      const key = `${line.ns} ${keyOf(line)}`;
      this.#known.set(key, (this.#known.get(key) ?? 0) + 1);
    }
  }

  /** Takes lines; `first` says that they are the first of a connection. */
  add(lines: readonly Line[], first: boolean): void {
    const expected = first && this.#lines.length + this.#waiting.length > 0;
    const fresh = this.#known.size === 0 ? lines : lines.filter((line) => !this.#isKnown(line));
    if (expected && fresh.length === lines.length && lines.length > 0)
      this.#waiting.push(gapBefore(lines[0]!));
    for (const line of fresh) this.#waiting.push(line);
    if (this.#waiting.length > this.#max) {
      this.lost += this.#waiting.length - this.#max;
      this.#waiting = this.#waiting.slice(-this.#max);
    }
  }

  /** Whether a line was there before the connection, which each of them is once. */
  #isKnown(line: Line): boolean {
    const key = `${line.ns} ${keyOf(line)}`;
    const count = this.#known.get(key) ?? 0;
    if (count > 1) this.#known.set(key, count - 1);
    else this.#known.delete(key);
    return count > 0;
  }

  /** Shows what waits, unless the view stands still. Returns how many lines left at the start, or undefined without a change. */
  flush(): number | undefined {
    if (this.#paused || this.#waiting.length === 0) return undefined;
    for (const line of this.#waiting) this.#lines.push(line);
    this.#waiting = [];
    const over = this.#lines.length - this.#max;
    if (over > 0) this.#lines = this.#lines.slice(over);
    return Math.max(0, over);
  }

  clear(): void {
    this.#lines = [];
    this.#waiting = [];
  }
}

function gapBefore({ ns }: Line): Line {
  const text = "Lines may be missing here: the connection was gone for too long";
  const stream = streamOf({});
  return { ns, text, stream, level: "warn", metadata: {}, parsed: {}, note: true };
}
