import type { SourceRef } from "@skald/contracts";
import type { SegmentRef, SteadyClock } from "@skald/model";
import { corruptSegmentOf } from "@skald/storage";

/** A segment is tried again after this long: somebody may have put a good copy in its place. */
const leaveOutMs = 10 * 60_000;
const maxNames = 10_000;
/** Segments that one query may find damaged before it gives up. */
const maxRetries = 100;
const maxNamed = 5;

/**
 * Keeps damaged segments from failing queries for ever: the first query that meets one is run again without it, and
 * later ones leave it out from the start.
 */
export class CorruptSegments {
  readonly #clock: SteadyClock;
  readonly #onFound: (name: string, error: unknown) => void;
  /** By file or key, with the time until which it is left out. */
  readonly #names = new Map<string, number>();

  /** `onFound` hears of each segment that is left out from now on, once, by its file or key. */
  constructor(deps: { clock: SteadyClock; onFound: (name: string, error: unknown) => void }) {
    this.#clock = deps.clock;
    this.#onFound = deps.onFound;
  }

  /** Runs a query until it meets no segment that was not known to be damaged. */
  async retry<T>(run: () => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries++) {
      try {
        return await run();
      } catch (error) {
        const name = corruptSegmentOf(error);
        if (name === undefined || retries === maxRetries) throw error;
        this.#leaveOut(name, error);
      }
    }
  }

  /** The sources that can be read; those that can not are told to `onCorrupt`. */
  without<Ref extends SourceRef>(
    refs: readonly Ref[],
    onCorrupt?: (ref: Ref) => void,
  ): readonly Ref[] {
    if (this.#names.size === 0) return refs;
    return refs.filter((ref) => {
      if (ref.kind === "head" || !this.#isLeftOut(nameOf(ref))) return true;
      onCorrupt?.(ref);
      return false;
    });
  }

  #leaveOut(name: string, error: unknown): void {
    if (this.#isLeftOut(name)) return;
    if (this.#names.size >= maxNames) this.#names.delete(this.#names.keys().next().value as string);
    this.#names.set(name, this.#clock.elapsedMs() + leaveOutMs);
    this.#onFound(name, error);
  }

  #isLeftOut(name: string): boolean {
    const untilMs = this.#names.get(name);
    if (untilMs === undefined) return false;
    if (this.#clock.elapsedMs() < untilMs) return true;
    this.#names.delete(name);
    return false;
  }
}

/** The warnings of an answer that lacks damaged segments. */
export function corruptWarnings(ids: ReadonlySet<string>): string[] {
  if (ids.size === 0) return [];
  const more = ids.size > maxNamed ? ` and ${ids.size - maxNamed} more` : "";
  const named = [...ids].slice(0, maxNamed).join(", ");
  return [`rows are missing: damaged segments were left out: ${named}${more}`];
}

function nameOf({ location }: SegmentRef): string {
  return location.kind === "file" ? location.path : location.key;
}
