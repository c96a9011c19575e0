import { setImmediate as nextTurn } from "node:timers/promises";

/** Runs work that could be interrupted to its end, at one go. */
export function runSteps<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Longest stretch of work between two turns of the event loop. */
const stretchMs = 4;

/**
 * Runs work that yields wherever it may be interrupted; lets other requests in when a stretch has become long. Small
 * pushes never give up the thread, and have their result at once; a push of a million streams never holds it.
 */
export function runInTurns<T>(work: Generator<void, T>): T | Promise<T> {
  const first = work.next();
  return first.done === true ? first.value : runRest(work);
}

async function runRest<T>(work: Generator<void, T>): Promise<T> {
  let start = performance.now();
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (performance.now() - start < stretchMs) continue;
    await nextTurn();
    start = performance.now();
  }
}
