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
  // Those that were stopped because another failed say so in their own ways: the cause is the first.
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
