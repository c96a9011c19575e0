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
import {
  compileMatcher,
  errorCodeOf,
  type Matcher,
  type SegmentRef,
  type TimeRange,
} from "@skald/model";
import { shadowedName, tenantLabelName } from "@skald/scan";
import type { CorruptSegments } from "./corrupt-segments.js";
import {
  instanceOf,
  orderSources,
  type PlannedSource,
  type ReplicaGroup,
} from "./order-sources.js";

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

interface CountedRequest extends FindRequest {
  readonly count: Pick<LeafCount, "plan" | "share">;
  readonly deleted: readonly RowFilter[];
  readonly tenantLabel: string | undefined;
}

/** A request as it goes to the services, which may be on another thread: plain data. */
export interface LookUpRequest {
  readonly request: FindRequest | CountedRequest;
  /** Whether listings must not be older than the query. */
  readonly fresh: boolean;
  /** On whose account rows of several places are compared; absent where they are not. */
  readonly share?: QueryShare | undefined;
}

/** What ingesters and the store have for a request: plain data. */
export interface LookedUp {
  readonly selection: Selection;
  readonly listed: readonly SegmentRef[];
  /** Ids of segments of the ingester whose rows the catalog has, counted or listed. */
  readonly known: readonly string[];
  /** What the catalog counted of the leaf, in how many segments. */
  readonly counted: readonly EncodedOutcome[];
  readonly countedSegments: number;
  /** The store could not be listed, and the ingester is said to have all rows of the range. */
  readonly unlisted: boolean;
}

/** The sources of one tenant for one selector, as another search of the same query may use them again: plain data. */
export interface FoundList extends TimeRange {
  readonly key: string;
  readonly sources: readonly PlannedSource[];
  readonly counted: readonly EncodedOutcome[];
  readonly countedSegments: number;
  readonly unlisted: boolean;
}

/** What a query found before it was placed, and what it will cost: plain data. */
export interface Found {
  /** Bytes of lines to be read, by estimate. */
  readonly cost: number;
  readonly lists: readonly FoundList[];
  /** Ids of damaged segments that the query has to do without. */
  readonly missing: readonly string[];
}

/** What one query found, and what it holds until it ends. */
export interface Search {
  readonly fresh: boolean;
  /** Views of ingesters, to be released. */
  readonly views: string[];
  /** Ids of damaged segments that the query has to do without. */
  readonly missing: Set<string>;
  /** What was found before, on another thread. */
  readonly known?: readonly FoundList[];
  /** What this search found. */
  readonly lists: FoundList[];
  /** An answer lacks what only the store has. */
  unlisted?: boolean;
  /** On whose account rows of several places are compared; absent where they are not. */
  share?: QueryShare;
}

/** Those who know where rows are. */
export interface LookUpServices {
  readonly ingester: Pick<HeldRows, "select">;
  readonly catalog: Catalog;
}

export interface SourceFinderDeps extends LookUpServices {
  readonly ingester: HeldRows;
  readonly corrupt: CorruptSegments;
  /** Absent where nothing is ever deleted by request. */
  readonly deletes?: Deletes | undefined;
  /** Looks up where the services are, and keeps the views there; `lookUp` is run on this thread if not given. */
  readonly lookUp?:
    | ((request: LookUpRequest, signal: AbortSignal) => Promise<LookedUp>)
    | undefined;
}

/** Finds everything that may hold rows of a selector in a time range. */
export class SourceFinder {
  readonly #deps: SourceFinderDeps;

  constructor(deps: SourceFinderDeps) {
    this.#deps = deps;
  }

  /** The sources of one tenant, those that the query found before if they cover the range. */
  async list(
    request: FindRequest | CountedRequest,
    search: Search,
    signal: AbortSignal,
    count?: LeafCount,
  ): Promise<readonly PlannedSource[]> {
    const key = keyOf(request);
    const known = search.known?.find((list) => list.key === key && covers(list, request));
    const list = known ?? (await this.#find(key, request, search, signal));
    search.lists.push(list);
    if (list.unlisted) search.unlisted = true;
    if (count !== undefined) {
      count.counted.push(...list.counted);
      count.segments += list.countedSegments;
    }
    if (list.fromNs === request.fromNs && list.toNs === request.toNs) return list.sources;
    return list.sources.filter(
      ({ ref }) => ref.minNs < request.toNs && ref.maxNs >= request.fromNs,
    );
  }

  /** Where the ingester's copy of a segment is damaged, that of the store is used. */
  async #find(
    key: string,
    request: FindRequest | CountedRequest,
    search: Search,
    signal: AbortSignal,
  ): Promise<FoundList> {
    const { corrupt } = this.#deps;
    const { missing, fresh, share } = search;
    const asked = { request, fresh, share };
    const { selection, listed, known, ...rest } =
      this.#deps.lookUp === undefined
        ? await lookUp(asked, this.#deps, (view) => search.views.push(view), signal)
        : await this.#deps.lookUp(asked, signal);
    const { sources, compared } = selection;
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
    const { fromNs, toNs } = request;
    return {
      key,
      fromNs,
      toNs,
      sources: withReplicas(planned, request, compared?.windows),
      ...rest,
    };
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
        const { plan, share } = count ?? {};
        const counting =
          plan === undefined || share === undefined
            ? {}
            : { count: { plan, share }, deleted: (await asking) ?? [], tenantLabel };
        const listing = this.list({ ...request, ...counting }, search, signal, count);
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
      for (const { sequence } of sources) before = Math.max(before, first + sequence + 1);
      return sources.map((source) => ({ ...source, sequence: first + source.sequence }));
    });
  }

  /** Gives the views of a query back; it does not matter when that fails, because ingesters forget them in time. */
  async release({ views }: Search): Promise<void> {
    if (views.length === 0) return;
    const { signal } = new AbortController();
    const releases = views.map((view) => this.#deps.ingester.release(view, { signal }));
    await Promise.allSettled(releases);
  }
}

/**
 * Asks the ingester first and the store second: a segment that the ingester dropped in between is in the store already, and
 * one that both have is used once. `onView` takes the view that the ingester opened, which somebody has to release.
 */
export async function lookUp(
  { request, fresh, share }: LookUpRequest,
  { ingester, catalog }: LookUpServices,
  onView: (view: string) => void,
  signal: AbortSignal,
): Promise<LookedUp> {
  const { tenant, matchers, fromNs, toNs } = request;
  const wanted = { tenant, matchers, fromNs, toNs };
  const asked = share === undefined ? wanted : { ...wanted, share };
  const selection = await ingester.select(asked, { signal });
  if (selection.view !== undefined) onView(selection.view);
  signal.throwIfAborted();
  const { sources, completeFromNs, storedAgoMs } = selection;
  const maxAgeMs = fresh ? 0 : storedAgoMs;
  const age = maxAgeMs === undefined ? {} : { maxAgeMs };
  const nothing = { listed: [], known: [], counted: [], countedSegments: 0 };
  const found = { selection, ...nothing, unlisted: false };
  try {
    if ("count" in request && catalog.count !== undefined) {
      return { ...found, ...(await countStored({ ...request, ...age }, sources, catalog, signal)) };
    }
    const held = sources.filter(({ kind }) => kind === "segment").map(({ id }) => id);
    return { ...found, listed: await catalog.list({ ...wanted, held, ...age }, { signal }) };
  } catch (error) {
    // A store that does not answer fails a query for old rows only.
    const isRecent = completeFromNs !== undefined && fromNs >= completeFromNs;
    if (!isRecent || errorCodeOf(error) !== "unavailable") throw error;
    return { ...found, unlisted: true };
  }
}

/** Lists what the catalog cannot count. */
async function countStored(
  request: CountedRequest & Pick<CatalogRequest, "maxAgeMs">,
  sources: readonly SourceRef[],
  catalog: Catalog,
  signal: AbortSignal,
): Promise<Pick<LookedUp, "listed" | "known" | "counted" | "countedSegments">> {
  const { count, deleted, tenantLabel, ...wanted } = request;
  const segments = sources.filter(({ kind }) => kind === "segment");
  const heads = sources.filter(({ kind }) => kind === "head");
  const busy = [
    ...[...segments, ...heads].map(({ minNs, maxNs }) => ({ fromNs: minNs, toNs: maxNs + 1n })),
    ...deleted.map((filter) => ({ fromNs: filter.fromNs, toNs: filter.toNs })),
  ];
  const plan = { ...count.plan, matchers: wanted.matchers };
  const labels = tenantLabel === undefined ? {} : { tenantLabel };
  const counting = { plan, busy, heldBusy: segments.length, ...labels };
  const asked = { ...wanted, held: segments.map(({ id }) => id), counting };
  const options = { signal, share: count.share };
  const found = (await catalog.count?.(asked, options)) as CatalogCounts;
  const { segments: listed, counted, countedSegments, known = [] } = found;
  return { listed, known, counted, countedSegments };
}

/** Equal for requests that ask for the same sources in any range. Leaves that are counted have keys of their own. */
function keyOf(request: FindRequest | CountedRequest): string {
  const { tenant, matchers } = request;
  const leaf = "count" in request ? request.count.plan.id : undefined;
  return JSON.stringify([tenant, matchers, leaf]);
}

/** Whether a list has all sources of a request; what was counted is of its own range only. */
function covers(list: FoundList, { fromNs, toNs, ...rest }: FindRequest | CountedRequest): boolean {
  if ("count" in rest) return list.fromNs === fromNs && list.toNs === toNs;
  return list.fromNs <= fromNs && list.toNs >= toNs;
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

/** Selectors of one tenant: the matchers without those on `__tenant_id__`, which have chosen the tenant. */
export interface TenantSelector {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** Set when streams shall carry the label: in queries over several tenants. */
  readonly tenantLabel?: string;
}

/** Splits a selector over the tenants of a request; with one tenant `__tenant_id__` is a label like any other. */
export function selectTenants(
  tenants: readonly string[],
  matchers: readonly Matcher[],
): TenantSelector[] {
  if (tenants.length === 1) return [{ tenant: tenants[0] as string, matchers }];
  const own = matchers
    .filter(({ name }) => name !== tenantLabelName)
    .map((one) => (one.name === shadowedName ? { ...one, name: tenantLabelName } : one));
  const tests = matchers.filter((matcher) => matcher.name === tenantLabelName).map(compileMatcher);
  return tenants
    .filter((tenant) => tests.every((test) => test(tenant)))
    .map((tenant) => ({ tenant, matchers: own, tenantLabel: tenant }));
}
