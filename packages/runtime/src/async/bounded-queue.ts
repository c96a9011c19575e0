import { SkaldError } from "@skald/model";
import { type Waiter, waitIn } from "./wait-list.js";

/** A first-in first-out queue that never holds more than `maxItems`; putters and takers wait with a signal. */
export class BoundedQueue<T> {
  readonly #maxItems: number;
  readonly #items: T[] = [];
  readonly #takers: Waiter[] = [];
  readonly #putters: Waiter[] = [];
  #closed = false;

  constructor(options: { maxItems: number }) {
    if (!(options.maxItems > 0)) throw new RangeError("a queue needs room for one item at least");
    this.#maxItems = options.maxItems;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Adds the item if there is room; false when the queue is full or closed. */
  push(item: T): boolean {
    if (this.#closed || this.#items.length >= this.#maxItems) return false;
    this.#items.push(item);
    this.#takers.shift()?.resolve();
    return true;
  }

  /** Adds the item as soon as there is room; rejects when the queue is closed or the signal is aborted. */
  async put(item: T, signal?: AbortSignal): Promise<void> {
    while (!this.push(item)) {
      if (this.#closed) throw new SkaldError("unavailable", "the queue is closed");
      await waitIn(this.#putters, 1, signal);
    }
  }

  /** The oldest item, as soon as there is one; undefined once the queue is closed and empty. */
  async take(signal?: AbortSignal): Promise<T | undefined> {
    while (this.#items.length === 0) {
      if (this.#closed) return undefined;
      await waitIn(this.#takers, 1, signal);
    }
    const item = this.#items.shift();
    this.#putters.shift()?.resolve();
    if (this.#items.length > 0) this.#takers.shift()?.resolve();
    return item;
  }

  /** Refuses new items; what is in the queue can still be taken. */
  close(): void {
    this.#closed = true;
    for (const waiter of [...this.#takers.splice(0), ...this.#putters.splice(0)]) waiter.resolve();
  }
}
