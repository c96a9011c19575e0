/** Runs work that could be interrupted to its end, at one go. */
export function runSteps<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
