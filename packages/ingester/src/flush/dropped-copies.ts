import type { SegmentRef, SteadyClock } from "@skald/model";
import { maxListingAgeMs } from "@skald/storage";

interface Dropped {
  readonly tenant: string;
  readonly minNs: bigint;
  /** When the store had it. */
  readonly uploadedMs: number;
}

/**
 * Local copies that were dropped so soon after their upload that a listing of the store that is still in use may lack them. Of what
 * an earlier process dropped it knows nothing but that it was stored before this one began.
 */
export class DroppedCopies {
  readonly #clock: SteadyClock;
  readonly #startMs: number;
  /** Where copies stay longer than any listing there is never anything to say. */
  readonly #isSoon: boolean;
  #dropped: Dropped[] = [];

  constructor({ clock, retainMs }: { readonly clock: SteadyClock; readonly retainMs: number }) {
    this.#clock = clock;
    this.#startMs = clock.elapsedMs();
    this.#isSoon = retainMs <= maxListingAgeMs;
  }

  note({ tenant, minNs }: SegmentRef, uploadedMs: number): void {
    if (!this.#isSoon) return;
    this.#forgetOld();
    this.#dropped.push({ tenant, minNs, uploadedMs });
  }

  /** A listing that was begun less than this ago, in ms, has all that was dropped of a tenant; undefined when any has that is in use. */
  storedAgoMs(tenant: string): number | undefined {
    this.#forgetOld();
    const own = this.#dropped.filter((one) => one.tenant === tenant);
    const lastMs = Math.max(...own.map(({ uploadedMs }) => uploadedMs), this.#earlierMs);
    return Number.isFinite(lastMs) ? this.#clock.elapsedMs() - lastMs : undefined;
  }

  /** Time of the oldest row of them, ns since the epoch: 0 while that is not known, undefined when there is none. */
  oldestNs(): bigint | undefined {
    if (Number.isFinite(this.#earlierMs)) return 0n;
    this.#forgetOld();
    const [first, ...others] = this.#dropped.map(({ minNs }) => minNs);
    return others.reduce(
      (oldest, ns) => (oldest === undefined || ns < oldest ? ns : oldest),
      first,
    );
  }

  /** Until when earlier processes may have stored what they dropped; -Infinity once every listing is younger. */
  get #earlierMs(): number {
    const isYoung = this.#clock.elapsedMs() - this.#startMs <= maxListingAgeMs;
    return this.#isSoon && isYoung ? this.#startMs : Number.NEGATIVE_INFINITY;
  }

  #forgetOld(): void {
    const beforeMs = this.#clock.elapsedMs() - maxListingAgeMs;
    if (this.#dropped.some(({ uploadedMs }) => uploadedMs < beforeMs))
      this.#dropped = this.#dropped.filter(({ uploadedMs }) => uploadedMs >= beforeMs);
  }
}
