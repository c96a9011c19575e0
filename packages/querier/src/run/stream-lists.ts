import {
  decodeStreams,
  decodeTexts,
  type EncodedStreams,
  type LabelsRequest,
  type Scanner,
  type StreamColumns,
  type StreamsRequest,
  type StreamTask,
  type TaskSource,
  type TenantLabels,
  type TenantStreams,
} from "@skald/contracts";
import type { Matcher } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import { StreamCollector } from "@skald/scan";
import { instanceOf, type PlannedSource, type Side } from "../find/order-sources.js";
import { type Search, type SourceFinder, selectTenants } from "../find/source-finder.js";
import { estimateBytes, indexShare } from "./cut-tasks.js";
import type { Scanners } from "./left-out-rows.js";
import { shareOf } from "./query-run.js";

/** Sources whose streams one job collects. */
const sourcesPerJob = 64;
/** Lists whose size is remembered. */
const maxNoted = 1000;
/** Bytes of lines that take as long to read as a byte of a list of streams takes to be written. */
const answerCost = 4;
/** A list that cost this much the last time is shared out among threads. */
const minSplitBytes = 1024 * 1024;

export interface StreamListsDeps {
  readonly finder: SourceFinder;
  readonly scanners: Scanners;
  /** Scans that run at the same time. */
  readonly threads: number;
  /** How large lists were lately. */
  readonly sizes: ListSizes;
  /** Throws where a list of this cost, in bytes of lines, is not to be made on this thread. */
  readonly place: (cost: number, search: Search) => void;
}

/** Makes lists of labels and streams, which are collected where the sources are. */
export class StreamLists {
  readonly #deps: StreamListsDeps;
  constructor(deps: StreamListsDeps) {
    this.#deps = deps;
  }

  /** Streams of each tenant with rows in the range. */
  streams(
    request: StreamsRequest,
    search: Search,
    signal: AbortSignal,
  ): Promise<readonly TenantStreams[]> {
    return Promise.all(
      request.tenants.map(async (tenant) => ({
        tenant,
        streams: unite(await this.#collect("streams", tenant, request, search, signal)),
      })),
    );
  }

  /** Label names of those streams, or values of one name. */
  labels(
    request: LabelsRequest,
    search: Search,
    signal: AbortSignal,
  ): Promise<readonly TenantLabels[]> {
    return Promise.all(
      request.tenants.map(async (tenant) => {
        const found = await this.#collect("labels", tenant, request, search, signal);
        return { tenant, texts: uniteTexts(found.parts) };
      }),
    );
  }

  /** Collects a list from the sources of a tenant, on several threads when it is large. */
  async #collect(
    kind: "streams" | "labels",
    tenant: string,
    request: LabelsRequest,
    search: Search,
    signal: AbortSignal,
  ): Promise<{ parts: EncodedStreams[]; areDisjoint: boolean }> {
    const { fromNs, toNs, label } = request;
    const selectors = selectorsFor(tenant, request);
    if (selectors === undefined) return { parts: [], areDisjoint: true };
    const found: EncodedStreams[] = [];
    const matchers = selectors.length === 1 ? (selectors[0] as readonly Matcher[]) : [];
    const sources = await this.#deps.finder.list(
      { tenant, matchers, fromNs, toNs },
      search,
      signal,
    );
    const name = `${tenant} ${kind} ${label}`;
    const known = this.#deps.sizes.of(name);
    const cost = Math.max(estimateBytes(sources, request) / indexShare, answerCost * known);
    this.#deps.place(cost, search);
    const share = { ...shareOf(request), cost };
    const count = answerCost * known > minSplitBytes ? this.#deps.threads : 1;
    const groups = byPlace(sources);
    const jobs = groups.flatMap(({ side, sources: group }) =>
      group.length > sourcesPerJob || count === 1
        ? chunks(group, sourcesPerJob).map((some): CollectJob => ({ side, sources: some }))
        : Array.from({ length: count }, (_, index): CollectJob => {
            return { side, sources: group, part: { index, count } };
          }),
    );
    await runConcurrently(jobs, this.#deps.threads, signal, async ({ side, ...job }, stop) => {
      const task = { ...job, selectors, fromNs, toNs, ...(label === undefined ? {} : { label }) };
      const scanner: Scanner = this.#deps.scanners[side];
      const bytes = await scanner.run(kind, task, { signal: stop, share });
      found.push(bytes);
    });
    const answer = found.reduce((sum, { byteLength }) => sum + byteLength, 0);
    this.#deps.sizes.note(name, answer);
    this.#deps.place(answerCost * answer, search);
    return {
      parts: found,
      areDisjoint: groups.length === 1 && jobs.every(({ part }) => part !== undefined),
    };
  }
}

/** The selectors of a request for the streams of one tenant; undefined when none chooses the tenant. */
function selectorsFor(
  tenant: string,
  { selectors, tenants }: LabelsRequest,
): readonly (readonly Matcher[])[] | undefined {
  const own = selectors.flatMap((matchers) =>
    selectTenants(tenants, matchers).flatMap((one) =>
      one.tenant === tenant ? [one.matchers] : [],
    ),
  );
  return own.length === 0 && selectors.length > 0 ? undefined : own;
}

/** Remembers how large lists were, for all queriers of a thread. */
export class ListSizes {
  readonly #bytes = new Map<string, number>();

  of(name: string): number {
    return this.#bytes.get(name) ?? 0;
  }

  note(name: string, bytes: number): void {
    const [oldest] = this.#bytes.keys();
    if (this.#bytes.size >= maxNoted && oldest !== undefined) this.#bytes.delete(oldest);
    this.#bytes.set(name, bytes);
  }
}

type CollectJob = Pick<StreamTask, "sources" | "part"> & { readonly side: Side };

/**
 * Sources by who is asked for them. An ingester of this process can read the store, and nobody else what it holds; where
 * there are several, each reads its own.
 */
function byPlace(
  sources: readonly PlannedSource[],
): { readonly side: Side; readonly sources: TaskSource[] }[] {
  if (sources.every(({ ref }) => instanceOf(ref) === undefined)) {
    const side = sources.some((source) => source.side === "ingester") ? "ingester" : "store";
    return [{ side, sources: sources.map(({ ref }) => ({ ref })) }];
  }
  const places = new Map<string | undefined, { side: Side; sources: TaskSource[] }>();
  for (const { ref, side } of sources) {
    const name = instanceOf(ref);
    const place = places.get(name);
    if (place === undefined) places.set(name, { side, sources: [{ ref }] });
    else place.sources.push({ ref });
  }
  return [...places.values()];
}

/** Lists of streams without one that is in two of them. */
function unite(found: {
  readonly parts: readonly EncodedStreams[];
  readonly areDisjoint: boolean;
}): StreamColumns[] {
  const lists = found.parts.map(decodeStreams);
  if (found.areDisjoint || lists.length <= 1) return lists;
  const all = new StreamCollector();
  for (const list of lists) all.addColumns(list);
  return [all.finish()];
}

/** Texts of several sorted lists, sorted, each once. */
function uniteTexts(parts: readonly EncodedStreams[]): readonly string[] {
  return parts.map(decodeTexts).reduce(mergeSorted, []);
}

function mergeSorted(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
  const merged: string[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const [left, right] = [a[i]!, b[j]!];
    if (left === right) j++;
    merged.push(left < right || left === right ? left : right);
    if (left <= right) i++;
    else j++;
  }
  while (i < a.length) merged.push(a[i++]!);
  while (j < b.length) merged.push(b[j++]!);
  return merged;
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}
