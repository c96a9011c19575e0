/** Grants at most `permits` at a time, first come first served; a waiter that is aborted leaves the queue. */
export class Semaphore {
  readonly #permits: number;
  #free: number;
  readonly #waiters: Waiter[] = [];

  constructor(permits: number) {
    if (!(permits > 0)) throw new RangeError(`a semaphore needs permits, got ${permits}`);
    this.#permits = permits;
    this.#free = permits;
  }

  /** Permits that nobody holds. */
  get free(): number {
    return this.#free;
  }

  /** Callers that wait. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Takes permits and returns what gives them back (once); rejects with the signal's reason. */
  async acquire(options: { permits?: number; signal?: AbortSignal } = {}): Promise<() => void> {
    const permits = options.permits ?? 1;
    if (permits > this.#permits)
      throw new RangeError(`${permits} permits asked of a semaphore of ${this.#permits}`);
    options.signal?.throwIfAborted();
    const release = this.tryAcquire(permits);
    if (release !== undefined) return release;
    await waitIn(this.#waiters, permits, options.signal, () => this.#grant());
    return this.#releaser(permits);
  }

  /** Takes permits if they are free and nobody waits; undefined otherwise. */
  tryAcquire(permits = 1): (() => void) | undefined {
    if (this.#waiters.length > 0 || permits > this.#free) return undefined;
    this.#free -= permits;
    return this.#releaser(permits);
  }

  /** Runs the task while holding one permit. */
  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(signal === undefined ? {} : { signal });
    try {
      return await task();
    } finally {
      release();
    }
  }

  #releaser(permits: number): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#free += permits;
      this.#grant();
    };
  }

  #grant(): void {
    for (let next = this.#waiters[0]; next !== undefined; next = this.#waiters[0]) {
      if (next.permits > this.#free) return;
      this.#waiters.shift();
      this.#free -= next.permits;
      next.resolve();
    }
  }
}

/** A caller that waits for permits. */
interface Waiter {
  readonly permits: number;
  readonly resolve: () => void;
}

/** Joins a queue of waiters. An abort leaves the queue and calls `onLeave`, because another waiter may be first now. */
function waitIn(
  queue: Waiter[],
  permits: number,
  signal: AbortSignal | undefined,
  onLeave: () => void,
): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      const index = queue.indexOf(waiter);
      if (index < 0) return;
      queue.splice(index, 1);
      reject(signal?.reason);
      onLeave();
    };
    const waiter = {
      permits,
      resolve: () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
    };
    queue.push(waiter);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * Runs `work` over the items, at most `width` at a time, in their order. The first failure aborts the signal given
 * to the others and is what the promise rejects with, once they have ended; no further item is begun.
 */
export async function runConcurrently<Item>(
  items: Iterable<Item>,
  width: number,
  signal: AbortSignal,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const iterator = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      if (both.aborted) return;
      await work(next.value, both);
    }
  };
  // Others may fail because they were stopped: the first failure is the cause.
  const failures: unknown[] = [];
  const lanes = Array.from({ length: width }, async () => {
    try {
      await lane();
    } catch (error) {
      failures.push(error);
      stop.abort();
    }
  });
  await Promise.all(lanes);
  if (signal.aborted) throw signal.reason;
  if (failures.length > 0) throw failures[0];
}
