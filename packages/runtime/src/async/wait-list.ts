/** Somebody who waits for permits, for room or for an item. */
export interface Waiter {
  readonly permits: number;
  readonly resolve: () => void;
}

/** Joins a queue of waiters; an abort leaves it again and lets the caller look who is first now. */
export function waitIn(
  queue: Waiter[],
  permits: number,
  signal: AbortSignal | undefined,
  onLeave: () => void = () => undefined,
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
