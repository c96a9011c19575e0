import type {
  Catalog,
  CatalogCounts,
  CatalogRequest,
  Deletes,
  EncodedOutcome,
  HeldRows,
  QueryShare,
  RowFilter,
  Selection,
  SourceRef,
} from "@skald/contracts";
import type { LeafPlan } from "@skald/logql";
import { errorCodeOf, type Matcher, type SegmentRef, type TimeRange } from "@skald/model";
import type { CorruptSegments } from "./corrupt-segments.js";
import {
  instanceOf,
  orderSources,
  type PlannedSource,
  type ReplicaGroup,
} from "./order-sources.js";
import type { TenantSelector } from "./tenants.js";

export interface FindRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
}

/** A leaf that may be counted without a scan, and what was so far. */
export interface LeafCount {
  readonly plan: LeafPlan;
  readonly share: QueryShare;
  readonly counted: EncodedOutcome[];
  segments: number;
}

interface CatalogListing {
  readonly listed: readonly SegmentRef[];
  /** Ids of segments of the ingester whose rows the catalog has, counted or listed. */
  readonly known: readonly string[];
}

interface CountedRequest extends FindRequest {
  readonly count: LeafCount;
  readonly deleted: readonly RowFilter[];
  readonly tenantLabel: string | undefined;
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
  /** On whose account rows of several places are compared; absent where they are not. */
  share?: QueryShare;
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
  async list(
    request: FindRequest | CountedRequest,
    search: Search,
    signal: AbortSignal,
  ): Promise<PlannedSource[]> {
    const { ingester, corrupt } = this.#deps;
    const { views, missing } = search;
    const { share } = search;
    const asked = share === undefined ? request : { ...request, share };
    const selection = await ingester.select(asked, { signal });
    const { view, sources, completeFromNs, compared } = selection;
    if (view !== undefined) views.push(view);
    const age = ageOf(search, selection);
    signal.throwIfAborted();
    const segments = sources.filter(({ kind }) => kind === "segment").map(({ id }) => id);
    const listing: Promise<CatalogListing> =
      "count" in request && this.#deps.catalog.count !== undefined
        ? this.#count({ ...request, ...age }, sources, signal)
        : this.#deps.catalog
            .list({ ...request, held: segments, ...age }, { signal })
            .then((listed) => ({ listed, known: [] }));
    const { listed, known } = await listing.catch((error: unknown) => {
      const isRecent = completeFromNs !== undefined && request.fromNs >= completeFromNs;
      if (!isRecent || errorCodeOf(error) !== "unavailable") throw error;
      search.unlisted = true;
      return { listed: [], known: [] };
    });
    signal.throwIfAborted();
    const stored = new Set([...known, ...listed.flatMap(({ replaces = [] }) => replaces)]);
    // What is listed itself is read where the ingester has it.
    for (const { id } of listed) stored.delete(id);
    const recent = corrupt.without(sources.filter(({ id }) => !stored.has(id)));
    const held = new Set(recent.map((ref) => ref.id));
    const others = listed.filter((ref) => !held.has(ref.id));
    const planned = orderSources(
      recent,
      corrupt.without(others, ({ id }) => missing.add(id)),
    );
    return withReplicas(planned, request, compared?.windows);
  }

  /** Lists what the catalog cannot count. */
  async #count(
    request: CountedRequest & Pick<CatalogRequest, "maxAgeMs">,
    sources: readonly SourceRef[],
    signal: AbortSignal,
  ): Promise<CatalogListing> {
    const { count, deleted, tenantLabel, ...wanted } = request;
    const { share } = count;
    const segments = sources.filter(({ kind }) => kind === "segment");
    const heads = sources.filter(({ kind }) => kind === "head");
    const busy = [
      ...[...segments, ...heads].map(({ minNs, maxNs }) => ({ fromNs: minNs, toNs: maxNs + 1n })),
      ...deleted.map((filter) => ({ fromNs: filter.fromNs, toNs: filter.toNs })),
    ];
    const plan = { ...count.plan, matchers: wanted.matchers };
    const labels = tenantLabel === undefined ? {} : { tenantLabel };
    const counting = { plan, busy, heldBusy: segments.length, ...labels };
    const held = segments.map(({ id }) => id);
    const asked = { ...wanted, held, counting };
    const found = (await this.#deps.catalog.count?.(asked, { signal, share })) as CatalogCounts;
    count.counted.push(...found.counted);
    count.segments += found.countedSegments;
    return { listed: found.segments, known: found.known ?? [] };
  }

  /** The sources of several tenants, numbered through, with what was deleted of them; without those that were counted. */
  async listAll(
    selectors: readonly TenantSelector[],
    range: TimeRange,
    search: Search,
    signal: AbortSignal,
    count?: LeafCount,
  ): Promise<PlannedSource[]> {
    const found = await Promise.all(
      selectors.map(async ({ tenant, matchers, tenantLabel }) => {
        const asking = this.#deps.deletes?.active({ tenant, ...range }, { signal });
        const request = { tenant, matchers, ...range };
        const listing =
          count === undefined
            ? this.list(request, search, signal)
            : this.list(
                { ...request, count, deleted: (await asking) ?? [], tenantLabel },
                search,
                signal,
              );
        const [listed, deleted = []] = await Promise.all([listing, asking]);
        const sources = withoutDeleted(listed, deleted);
        return tenantLabel === undefined
          ? sources
          : sources.map((source) => ({ ...source, tenantLabel }));
      }),
    );
    let before = 0;
    return found.flatMap((sources) => {
      const first = before;
      before += sources.length;
      return sources.map((source) => ({ ...source, sequence: first + source.sequence }));
    });
  }

  /** Gives the views of a query back; it does not matter when that fails, because ingesters forget them in time. */
  async release({ views }: Search): Promise<void> {
    const { signal } = new AbortController();
    const releases = views.map((view) => this.#deps.ingester.release(view, { signal }));
    await Promise.allSettled(releases);
  }
}

function ageOf(
  { fresh }: Search,
  { storedAgoMs }: Pick<Selection, "storedAgoMs">,
): Pick<CatalogRequest, "maxAgeMs"> {
  const maxAgeMs = fresh ? 0 : storedAgoMs;
  return maxAgeMs === undefined ? {} : { maxAgeMs };
}

/** The sources, each with those of other places; as they are, where there is one place only. */
function withReplicas(
  sources: PlannedSource[],
  { matchers, fromNs, toNs }: FindRequest,
  known: ReplicaGroup["known"] = [],
): PlannedSource[] {
  if (sources.every(({ ref }) => instanceOf(ref) === undefined)) return sources;
  const replicas = { sources, matchers, fromNs, toNs, known };
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
