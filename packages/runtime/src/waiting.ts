import { SkaldError } from "@skald/model";

/** The longest wait of a Node timer; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Waits; rejects with the signal's reason when it is aborted first. Tests pass their own. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Waits on the real timer, 24.8 days at most. */
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

/** Runs the task again and again with a pause between, until the signal is aborted; errors go to `onError`. */
export async function repeat(
  task: () => Promise<void> | void,
  options: {
    readonly pauseMs: number;
    readonly signal: AbortSignal;
    readonly onError: (error: unknown) => void;
    readonly sleep?: Sleep;
  },
): Promise<void> {
  while (!options.signal.aborted) {
    try {
      await (options.sleep ?? sleep)(options.pauseMs, options.signal);
    } catch {
      return;
    }
    try {
      await task();
    } catch (error) {
      if (!options.signal.aborted) options.onError(error);
    }
  }
}

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
  /** Called with each failure that is tried again. */
  readonly onRetry?: (error: unknown, attempt: number) => void;
  readonly sleep?: Sleep;
  /** In [0, 1): the seed of the jitter. */
  readonly random?: () => number;
}

function backoffMs(attempt: number, options: RetryOptions): number {
  const full = Math.min(options.maxBackoffMs, options.minBackoffMs * 2 ** attempt);
  return full * (0.5 + 0.5 * (options.random ?? Math.random)());
}

/**
 * A signal that aborts with `deadline_exceeded` and this message after `timeoutMs`, or with the reason of `signal`. A timeout of
 * 0 or of more than 24 days means no limit.
 */
export function deadline(options: {
  readonly timeoutMs: number;
  readonly message: string;
  readonly signal?: AbortSignal;
}): Deadline {
  const controller = new AbortController();
  const parent = options.signal;
  const onAbort = (): void => controller.abort(parent?.reason);
  const expire = (): void => controller.abort(new SkaldError("deadline_exceeded", options.message));
  const timed = options.timeoutMs > 0 && options.timeoutMs <= maxTimerMs;
  const timer = timed ? setTimeout(expire, options.timeoutMs) : undefined;
  timer?.unref();
  if (parent?.aborted) onAbort();
  else parent?.addEventListener("abort", onAbort, { once: true });
  const clear = (): void => {
    clearTimeout(timer);
    parent?.removeEventListener("abort", onAbort);
  };
  return { signal: controller.signal, clear };
}

/**
 * Runs work that ends with a `deadline`. `AbortSignal.any` with `AbortSignal.timeout` is no substitute: what it gives forgets that
 * the time is over if the timeout is collected as garbage before anybody looks (Node 24).
 */
export async function withDeadline<T>(
  options: Parameters<typeof deadline>[0],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, clear } = deadline(options);
  try {
    return await work(signal);
  } finally {
    clear();
  }
}

/** The signal of `deadline`. Call `clear` when the work is done. */
export interface Deadline {
  readonly signal: AbortSignal;
  clear(): void;
}
