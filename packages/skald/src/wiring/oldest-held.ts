import type { Batch, Clock } from "@skald/model";

export interface OldestHeldOptions {
  /** Time of the oldest row that the ingester holds, ns since the epoch; undefined when it holds none. */
  readonly oldestNs: () => bigint | undefined;
  /** Writes the member, with `oldestMs`, to the ring at once. */
  readonly publish: () => Promise<void>;
  readonly clock: Clock;
}

/** Queriers ask ingesters for rows newer than this in any case. */
const recentMs = 30 * 60_000;
const hourMs = 3_600_000;
/** If the ring could not be written, heartbeats have this time to do it before a push tries again. */
const pauseMs = 10_000;

/**
 * Publishes in the ring how old the rows of the ingester are. A query of old times asks the ingester only if it holds such
 * rows, which came late and are not in the store yet. Times are rounded to hours, so that they seldom change; a push of older
 * rows is answered after the ring was written.
 */
export class OldestHeld {
  readonly #options: OldestHeldOptions;
  /** Running pushes with rows that may be older than the published time. */
  readonly #underWay = new Set<{ readonly ms: number }>();
  #toldMs = Number.POSITIVE_INFINITY;
  #retryMs = 0;
  #publishing: Promise<void> | undefined;

  constructor(options: OldestHeldOptions) {
    this.#options = options;
  }

  /** The time to publish, ms since the epoch; undefined if no rows are held. */
  oldestMs(): number | undefined {
    const held = this.#options.oldestNs();
    const heldMs = held === undefined ? Number.POSITIVE_INFINITY : Number(held / 1_000_000n);
    const oldest = Math.min(heldMs, ...[...this.#underWay].map(({ ms }) => ms));
    this.#toldMs = Math.floor(oldest / hourMs) * hourMs;
    return Number.isFinite(this.#toldMs) ? this.#toldMs : undefined;
  }

  /** Runs a push, and publishes first if its rows are older than the published time. */
  async aroundPush<T>({ seconds }: Pick<Batch, "seconds">, push: () => Promise<T>): Promise<T> {
    const ms = leastOf(seconds) * 1000;
    const nowMs = this.#options.clock.nowMs();
    if (ms >= nowMs - recentMs) return push();
    const one = { ms };
    this.#underWay.add(one);
    try {
      const [outcome] = await Promise.all([push(), this.#tell(ms, nowMs)]);
      return outcome;
    } finally {
      this.#underWay.delete(one);
    }
  }

  async #tell(ms: number, nowMs: number): Promise<void> {
    // A running write may have begun before this push.
    await this.#publishing;
    while (ms < this.#toldMs && nowMs >= this.#retryMs) {
      this.#publishing ??= this.#publish(nowMs);
      await this.#publishing;
    }
  }

  async #publish(nowMs: number): Promise<void> {
    try {
      await this.#options.publish();
    } catch {
      this.#retryMs = nowMs + pauseMs;
    } finally {
      this.#publishing = undefined;
    }
  }
}

function leastOf(numbers: Float64Array): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < numbers.length; i++) if (numbers[i]! < least) least = numbers[i]!;
  return least;
}
