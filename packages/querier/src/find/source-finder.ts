import type { Catalog, Deletes, HeldRows, RowFilter } from "@skald/contracts";
import { errorCodeOf, type Matcher, type TimeRange } from "@skald/model";
import type { CorruptSegments } from "./corrupt-segments.js";
import { instanceOf, orderSources, type PlannedSource } from "./order-sources.js";
import type { TenantSelector } from "./tenants.js";

export interface FindRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
}

/** What one query found, and what it holds until it ends. */
export interface Search {
  /** Whether listings must not be older than the query. */
  readonly fresh: boolean;
  /** Views of ingesters, to be released. */
  readonly views: string[];
  /** Ids of damaged segments that the query has to do without. */
  readonly missing: Set<string>;
  /** The store could not be listed, and the ingester is said to have all rows of the range. */
  unlisted?: boolean;
}

export interface SourceFinderDeps {
  readonly ingester: HeldRows;
  readonly catalog: Catalog;
  readonly corrupt: CorruptSegments;
  /** Absent where nothing is ever deleted by request. */
  readonly deletes?: Deletes | undefined;
}

/** Finds everything that may hold rows of a selector in a time range. */
export class SourceFinder {
  readonly #deps: SourceFinderDeps;

  constructor(deps: SourceFinderDeps) {
    this.#deps = deps;
  }

  /**
   * Asks the ingester first and the store second: a segment that the ingester dropped in between is in the store
   * already, and one that both have is used once. Where the ingester's copy is damaged, that of the store is used. A store
   * that does not answer fails a query for old rows only.
   */
  async list(request: FindRequest, search: Search, signal: AbortSignal): Promise<PlannedSource[]> {
    const { ingester, catalog, corrupt } = this.#deps;
    const { fresh, views, missing } = search;
    const { view, sources, completeFromNs } = await ingester.select(request, { signal });
    if (view !== undefined) views.push(view);
    signal.throwIfAborted();
    const segments = sources.filter(({ kind }) => kind === "segment").map(({ id }) => id);
    const listed = await catalog
      .list({ ...request, held: segments, ...(fresh ? { maxAgeMs: 0 } : {}) }, { signal })
      .catch((error: unknown) => {
        const isRecent = completeFromNs !== undefined && request.fromNs >= completeFromNs;
        if (!isRecent || errorCodeOf(error) !== "unavailable") throw error;
        search.unlisted = true;
        return [];
      });
    signal.throwIfAborted();
    const merged = new Set(listed.flatMap(({ replaces = [] }) => replaces));
    const recent = corrupt.without(sources.filter(({ id }) => !merged.has(id)));
    const held = new Set(recent.map((ref) => ref.id));
    const others = listed.filter((ref) => !held.has(ref.id));
    const planned = orderSources(
      recent,
      corrupt.without(others, ({ id }) => missing.add(id)),
    );
    return withReplicas(planned, request);
  }

  /** The sources of several tenants, numbered through, with what was deleted of them. */
  async listAll(
    selectors: readonly TenantSelector[],
    range: TimeRange,
    search: Search,
    signal: AbortSignal,
  ): Promise<PlannedSource[]> {
    const found = await Promise.all(
      selectors.map(async ({ tenant, matchers, tenantLabel }) => {
        const { deletes } = this.#deps;
        const [listed, deleted = []] = await Promise.all([
          this.list({ tenant, matchers, ...range }, search, signal),
          deletes?.active({ tenant, ...range }, { signal }),
        ]);
        const sources = withoutDeleted(listed, deleted);
        return tenantLabel === undefined
          ? sources
          : sources.map((source) => ({ ...source, tenantLabel }));
      }),
    );
    return found.flat().map((source, sequence) => ({ ...source, sequence }));
  }

  /** Gives the views of a query back; it does not matter when that fails, because ingesters forget them in time. */
  async release({ views }: Search): Promise<void> {
    const { signal } = new AbortController();
    const releases = views.map((view) => this.#deps.ingester.release(view, { signal }));
    await Promise.allSettled(releases);
  }
}

/** The sources, each with those of other places; as they are, where there is one place only. */
function withReplicas(
  sources: PlannedSource[],
  { matchers, fromNs, toNs }: FindRequest,
): PlannedSource[] {
  if (sources.every(({ ref }) => instanceOf(ref) === undefined)) return sources;
  const replicas = { sources, matchers, fromNs, toNs };
  return sources.map((source) => ({ ...source, replicas }));
}

/** The sources, each with the filters whose time it shares. */
function withoutDeleted(
  sources: readonly PlannedSource[],
  filters: readonly RowFilter[],
): readonly PlannedSource[] {
  if (filters.length === 0) return sources;
  return sources.map((source) => {
    const { minNs, maxNs } = source.ref;
    const deleted = filters.filter(({ fromNs, toNs }) => fromNs <= maxNs && toNs > minNs);
    return deleted.length === 0 ? source : { ...source, deleted };
  });
}
