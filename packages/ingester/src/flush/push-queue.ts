import { SkaldError } from "@skald/model";
import { type Sleep, sleep } from "@skald/runtime";
import type { Wal } from "@skald/storage";
import type { Sealer } from "./sealer.js";

export interface PushQueueOptions {
  readonly sealer: Sealer;
  readonly log: () => Pick<Wal, "reserve" | "tryReserve">;
  readonly maxWaitingBytes: number;
  readonly maxWaitMs: number;
  readonly sleep?: Sleep;
}

/**
 * Where pushes wait while sealing or the log lags behind: the memory of what waits is bounded, and so is the time. Whoever
 * does not get in is told to slow down.
 */
export class PushQueue {
  readonly #options: PushQueueOptions;
  #waitingBytes = 0;

  constructor(options: PushQueueOptions) {
    this.#options = options;
  }

  /**
   * Resolves when a push may be appended; call what it gives when the log has it. `logBytes` go to the log, `heldBytes`
   * are in memory while it waits. Rejects with `rate_limited`.
   */
  enter(logBytes: number, heldBytes: number): Promise<() => void> {
    const { sealer, log, maxWaitingBytes } = this.#options;
    const release = sealer.hasRoom ? log().tryReserve(logBytes) : undefined;
    if (release !== undefined) return Promise.resolve(release);
    if (this.#waitingBytes > 0 && this.#waitingBytes + heldBytes > maxWaitingBytes) {
      return Promise.reject(slowDown("too many pushes wait to be stored"));
    }
    return this.#wait(logBytes, heldBytes);
  }

  async #wait(logBytes: number, heldBytes: number): Promise<() => void> {
    const { sealer, log, maxWaitMs } = this.#options;
    const late = new AbortController();
    const done = new AbortController();
    const timer = (this.#options.sleep ?? sleep)(maxWaitMs, done.signal).then(
      () => late.abort(slowDown(`the push has waited ${maxWaitMs / 1000}s to be stored`)),
      () => undefined,
    );
    this.#waitingBytes += heldBytes;
    try {
      for (;;) {
        await sealer.room(late.signal);
        const release = await log().reserve(logBytes, late.signal);
        if (sealer.hasRoom || sealer.isClosed) return release;
        release();
      }
    } finally {
      this.#waitingBytes -= heldBytes;
      done.abort();
      await timer;
    }
  }
}

function slowDown(why: string): SkaldError {
  return new SkaldError("rate_limited", `${why}; slow down`);
}
