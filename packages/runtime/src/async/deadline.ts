import { SkaldError } from "@skald/model";
import { maxTimerMs } from "./sleep.js";

/** Aborts with a `deadline_exceeded` error of this message after `timeoutMs`, or with the parent's reason; 0 or more than 24 days means no limit. */
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

/** A signal that is aborted after a time, or with another one. Call `clear` when the work is done. */
export interface Deadline {
  readonly signal: AbortSignal;
  clear(): void;
}
