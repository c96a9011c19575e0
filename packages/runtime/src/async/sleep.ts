/** The longest wait of a timer; it fires at once when given more. */
export const maxTimerMs = 2 ** 31 - 1;

/** Waits; rejects with the signal's reason when it is aborted first. Tests pass their own. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Waits on the real timer; longer than the timer can, 24.8 days, is cut to that. */
export const sleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
      Math.min(ms, maxTimerMs),
    );
    signal?.addEventListener("abort", onAbort, { once: true });
  });
