import type { Batch, Clock } from "@skald/model";

export interface OldestHeldOptions {
  /** Time of the oldest row that the ingester holds, ns since the epoch; undefined when it holds none. */
  readonly oldestNs: () => bigint | undefined;
  /** Has the ring told at once; `oldestMs` is asked for what. */
  readonly publish: () => Promise<void>;
  readonly clock: Clock;
}

/** Ingesters are asked for rows that are newer than this anyway. */
const recentMs = 30 * 60_000;
const hourMs = 3_600_000;
/** After the ring could not be told, heartbeats have so long to do it before the next push tries again. */
const pauseMs = 10_000;

/**
 * Tells, by this process's member of the ring, how old the rows are that the ingester holds, so that those who query old times
 * ask ingesters when, and only when, these have rows of them: what came late is not in the store yet. In whole hours, so that it
 * seldom changes; a push of older rows is answered after the ring was told.
 */
export class OldestHeld {
  readonly #options: OldestHeldOptions;
  /** Of pushes under way that have older rows than was told. */
  readonly #underWay = new Set<{ readonly ms: number }>();
  #toldMs = Number.POSITIVE_INFINITY;
  #retryMs = 0;
  #publishing: Promise<void> | undefined;

  constructor(options: OldestHeldOptions) {
    this.#options = options;
  }

  /** What is to be told now, in ms since the epoch; undefined when nothing is held. */
  oldestMs(): number | undefined {
    const held = this.#options.oldestNs();
    const heldMs = held === undefined ? Number.POSITIVE_INFINITY : Number(held / 1_000_000n);
    const oldest = Math.min(heldMs, ...[...this.#underWay].map(({ ms }) => ms));
    this.#toldMs = Math.floor(oldest / hourMs) * hourMs;
    return Number.isFinite(this.#toldMs) ? this.#toldMs : undefined;
  }

  /** Does a push, and tells the ring if it has older rows than were told of. */
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
    // What is being told may be from before this push.
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
