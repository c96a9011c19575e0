import type { Covers, Ring } from "@skald/ring";
import { type Logger, type Sleep, sleep } from "@skald/runtime";

export interface LostMembersOptions {
  readonly ring: Pick<Ring, "covered" | "lostSince" | "onRead" | "unready">;
  readonly id: string;
  /** Overdue heartbeats end a membership after this time; 0: never. */
  readonly heartbeatTimeoutMs: number;
  /** Stores all rows that the ingester has. */
  readonly flush: () => Promise<void>;
  /** Writes the member, with `covers`, to the ring at once. */
  readonly publish: () => Promise<void>;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/** Others may see a member die later than this process, and a push may still be under way: this many timeouts are enough. */
const certainTimeouts = 2;
/** Pause after a flush that failed. */
const retryMs = 30_000;

/**
 * Makes up for ingesters that are lost. Each row is on another ingester too. So when one is lost, all others store what they
 * have and publish that: from then on no answer misses the lost one (`Member.covers`).
 */
export class LostMembers {
  readonly #options: LostMembersOptions;
  readonly #covers = new Map<string, string>();
  readonly #abort = new AbortController();
  readonly #stopWatching: () => void;
  #flushing: Promise<void> | undefined;

  constructor(options: LostMembersOptions) {
    this.#options = options;
    this.#stopWatching = options.ring.onRead(() => this.#look());
  }

  /** The lost members that this ingester covers, for the ring. What it said in an earlier life is still true. */
  covers(earlier: Covers): Covers {
    const known = [...Object.entries(earlier), ...this.#covers];
    const { ring } = this.#options;
    if (ring.unready !== undefined) return Object.fromEntries(known);
    // Members that came back or were forgotten are left out.
    const signs = new Map(
      [...ring.covered, ...ring.lostSince(-1)].map(({ id, sign }) => [id, sign]),
    );
    return Object.fromEntries(known.filter(([id, sign]) => signs.get(id) === sign));
  }

  /** Covers what all others cover. An ingester that has no rows, and took none yet, has none in common with those. */
  adopt(): void {
    for (const { id, sign } of this.#options.ring.covered) this.#covers.set(id, sign);
  }

  async stop(): Promise<void> {
    this.#stopWatching();
    this.#abort.abort();
    await this.#flushing;
  }

  #look(): void {
    const { ring, id: ownId, heartbeatTimeoutMs } = this.#options;
    if (heartbeatTimeoutMs === 0 || this.#flushing !== undefined || this.#abort.signal.aborted)
      return;
    const lost = ring.lostSince(certainTimeouts * heartbeatTimeoutMs);
    const fresh = lost.filter(({ id, sign }) => id !== ownId && this.#covers.get(id) !== sign);
    if (fresh.length === 0) return;
    this.#flushing = this.#cover(fresh).finally(() => {
      this.#flushing = undefined;
    });
  }

  async #cover(lost: readonly { readonly id: string; readonly sign: string }[]): Promise<void> {
    const { flush, publish, log } = this.#options;
    const members = lost.map(({ id }) => id).join(",");
    try {
      log.warn("ingesters are lost: all rows are stored now, so that none misses them", {
        members,
      });
      await flush();
      for (const { id, sign } of lost) this.#covers.set(id, sign);
      log.info("all rows are stored for lost ingesters", { members });
      // A heartbeat repeats what cannot be written now.
      await publish().catch(() => undefined);
    } catch (error) {
      log.warn("rows could not be stored for a lost ingester; trying again", { members, error });
      const pause = this.#options.sleep ?? sleep;
      await pause(retryMs, this.#abort.signal).catch(() => undefined);
    }
  }
}
