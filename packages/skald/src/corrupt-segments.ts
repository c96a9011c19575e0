import { AsyncLocalStorage } from "node:async_hooks";
import type { QueryBackend } from "@skald/frontend";
import type { Clock, Ingester, SegmentRef, SourceRef } from "@skald/model";
import type { Logger, Metrics } from "@skald/runtime";
import { type CatalogRequest, corruptSegmentOf } from "@skald/storage";

interface Catalog {
  list(request: CatalogRequest): Promise<readonly SourceRef[]>;
}

/** What one query found: segments that it had to do without, and those that it had. */
interface Sighting {
  readonly leftOut: Set<string>;
  readonly had: Set<string>;
}

/** A segment is tried again after this long: somebody may have put a good copy in its place. */
const leaveOutMs = 10 * 60_000;
const maxNames = 10_000;
/** Segments that one query may find damaged before it gives up. */
const maxRetries = 100;
const maxNamed = 5;

/**
 * Keeps damaged segments from failing queries for ever: the first query that meets one is run again without it, and
 * later ones leave it out from the start. Where the ingester's copy is the damaged one, that of the store is used. An
 * answer that lacks rows has a warning. Wraps what a querier reads from, and the querier itself.
 */
export class CorruptSegments {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #count: ReturnType<Metrics["counter"]>;
  readonly #query = new AsyncLocalStorage<Sighting>();
  /** By file or key, with the time until which it is left out. */
  readonly #names = new Map<string, number>();

  constructor(deps: { clock: Clock; log: Logger; metrics: Metrics }) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    const help = "Segments that queries found damaged and left out.";
    this.#count = deps.metrics.counter("querier_corrupt_segments_total", help);
  }

  /** The same catalog without damaged segments. */
  catalog(inner: Catalog): Catalog {
    return {
      list: async (request) => {
        const refs = await inner.list(request);
        const leftOut = this.#query.getStore()?.leftOut;
        return this.#names.size === 0 ? refs : this.#good(refs, (ref) => leftOut?.add(ref.id));
      },
    };
  }

  /** The same ingester without damaged local segments. */
  ingester(inner: Ingester): Ingester {
    return {
      push: (request) => inner.push(request),
      flush: () => inner.flush(),
      select: async (request) => {
        const { sources } = await inner.select(request);
        if (this.#names.size === 0) return { sources };
        const good = this.#good(sources);
        const had = this.#query.getStore()?.had;
        for (const { id } of good) had?.add(id);
        return { sources: good };
      },
    };
  }

  /** The same querier, told of what it has to do without. */
  backend(inner: QueryBackend): QueryBackend {
    return {
      query: async (request, signal) => {
        const { value, missing } = await this.#retry(() => inner.query(request, signal));
        if (missing.length === 0) return value;
        const warnings = [...value.result.warnings, warningOf(missing)];
        return { ...value, result: { ...value.result, warnings } };
      },
      streams: async (request, signal) =>
        (await this.#retry(() => inner.streams(request, signal))).value,
    };
  }

  async #retry<T>(run: () => Promise<T>): Promise<{ value: T; missing: string[] }> {
    for (let retries = 0; ; retries++) {
      const sighting: Sighting = { leftOut: new Set(), had: new Set() };
      try {
        const value = await this.#query.run(sighting, run);
        const missing = [...sighting.leftOut].filter((id) => !sighting.had.has(id));
        return { value, missing };
      } catch (error) {
        const name = corruptSegmentOf(error);
        if (name === undefined || retries === maxRetries) throw error;
        this.#leaveOut(name, error);
      }
    }
  }

  #leaveOut(name: string, error: unknown): void {
    if (this.#isLeftOut(name)) return;
    if (this.#names.size >= maxNames) this.#names.delete(this.#names.keys().next().value as string);
    this.#names.set(name, this.#clock.nowMs() + leaveOutMs);
    this.#count.inc();
    this.#log.error("a segment is damaged; queries leave it out", { segment: name, error });
  }

  #isLeftOut(name: string): boolean {
    const untilMs = this.#names.get(name);
    if (untilMs === undefined) return false;
    if (this.#clock.nowMs() < untilMs) return true;
    this.#names.delete(name);
    return false;
  }

  #good(refs: readonly SourceRef[], onBad?: (ref: SegmentRef) => void): readonly SourceRef[] {
    return refs.filter((ref) => {
      if (ref.kind === "head" || !this.#isLeftOut(nameOf(ref))) return true;
      onBad?.(ref);
      return false;
    });
  }
}

function nameOf({ location }: SegmentRef): string {
  return location.kind === "file" ? location.path : location.key;
}

function warningOf(ids: readonly string[]): string {
  const more = ids.length > maxNamed ? ` and ${ids.length - maxNamed} more` : "";
  return `rows are missing: damaged segments were left out: ${ids.slice(0, maxNamed).join(", ")}${more}`;
}
