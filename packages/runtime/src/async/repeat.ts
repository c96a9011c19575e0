import { type Sleep, sleep } from "./sleep.js";

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
