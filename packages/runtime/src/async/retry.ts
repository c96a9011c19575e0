import { type Sleep, sleep } from "./sleep.js";

/** Runs the task until it succeeds; throws its last error. Pauses are drawn from the upper half of the backoff. */
export async function retry<T>(
  task: (attempt: number) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    options.signal?.throwIfAborted();
    try {
      return await task(attempt);
    } catch (error) {
      const retriable = options.isRetriable?.(error) ?? true;
      if (!retriable || attempt >= options.maxRetries || options.signal?.aborted) throw error;
      options.onRetry?.(error, attempt);
    }
    await (options.sleep ?? sleep)(backoffMs(attempt, options), options.signal);
  }
}

/** How often and how patiently `retry` tries again. */
export interface RetryOptions {
  /** Tries after the first one; Infinity to go on until the signal is aborted. */
  readonly maxRetries: number;
  /** The first pause; each next one is twice as long, up to the longest. */
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly signal?: AbortSignal;
  /** Errors that trying again cannot help; by default all are tried again. */
  readonly isRetriable?: (error: unknown) => boolean;
  /** Told of each failure that is tried again. */
  readonly onRetry?: (error: unknown, attempt: number) => void;
  readonly sleep?: Sleep;
  /** In [0, 1): the seed of the jitter. */
  readonly random?: () => number;
}

function backoffMs(attempt: number, options: RetryOptions): number {
  const full = Math.min(options.maxBackoffMs, options.minBackoffMs * 2 ** attempt);
  return full * (0.5 + 0.5 * (options.random ?? Math.random)());
}
