import type {
  CallOptions,
  Catalog,
  CatalogCounts,
  CatalogRequest,
  CountRequest,
  ScanOptions,
} from "@skald/contracts";
import type { SegmentRef, TimeRange } from "@skald/model";
import type { DayIndex, DayView, SegmentCatalog } from "@skald/storage";
import { type CountDayTask, countDay, type DayCount } from "./count-day.js";

export interface CountingCatalogDeps {
  readonly catalog: Pick<SegmentCatalog, "list" | "days">;
  /** Counts elsewhere than on this thread, where that is worth it. */
  readonly countDay: (task: CountDayTask, options: ScanOptions) => Promise<DayCount>;
  /** Streams, and streams of segments, that are counted on this thread: to ask another one takes longer. 1024 where absent. */
  readonly maxHere?: number;
}

const defaultMaxHere = 1024;
/** Bytes of lines that take as long to be read as a stream of a segment to be counted. */
const streamCost = 64;

/** A catalog that has whole segments counted by the index of their day. */
export class CountingCatalog implements Catalog {
  readonly #deps: CountingCatalogDeps;
  readonly #names = new WeakMap<DayIndex, string>();
  #named = 0;

  constructor(deps: CountingCatalogDeps) {
    this.#deps = deps;
  }

  list(request: CatalogRequest, options: CallOptions): Promise<readonly SegmentRef[]> {
    return this.#deps.catalog.list(request, options);
  }

  async count(request: CountRequest, options: ScanOptions): Promise<CatalogCounts> {
    const days = await this.#deps.catalog.days(request, options);
    const found = await Promise.all(days.map((day) => this.#countDay(day, request, options)));
    return {
      segments: found.flatMap(({ segments }) => segments),
      counted: found.flatMap(({ counted }) => counted),
      countedSegments: found.reduce((sum, { countedSegments }) => sum + countedSegments, 0),
      known: found.flatMap(({ known = [] }) => known),
    };
  }

  async #countDay(
    day: DayView,
    { counting, ...asked }: CountRequest,
    options: ScanOptions,
  ): Promise<CatalogCounts> {
    const { index } = day;
    if (index === undefined || index.counts.size === 0) {
      return { segments: day.select(asked), counted: [], countedSegments: 0 };
    }
    const { plan, busy, heldBusy = 0, tenantLabel } = counting;
    const { held = [] } = asked;
    const known = new Set(held.filter((id) => hasRowsOf(index, id)));
    const young = day.select({ ...asked, places: [] });
    const stretches = [
      ...busy.filter((_, i) => i >= heldBusy || !known.has(held[i] ?? "")),
      ...young.map(({ minNs, maxNs }) => ({ fromNs: minNs, toNs: maxNs + 1n })),
    ];
    const task = {
      ...{ plan, name: this.#nameOf(index), image: index.image, tenantLabel },
      busy: united(stretches, index.baseNs),
    };
    const cost = options.share.cost + index.counts.size * streamCost;
    const { maxHere = defaultMaxHere } = this.#deps;
    const isSmall = index.counts.size <= maxHere && index.streams.count <= maxHere;
    const check = () => options.signal.throwIfAborted();
    const { left, outcome, countedSegments } = isSmall
      ? countDay(task, index, { check })
      : await this.#deps.countDay(task, { ...options, share: { ...options.share, cost } });
    const segments = day.select({ ...asked, places: left });
    const counted = countedSegments === 0 ? [] : [outcome];
    return { segments, counted, countedSegments, known: [...known] };
  }

  #nameOf(index: DayIndex): string {
    let name = this.#names.get(index);
    if (name === undefined) {
      name = String(this.#named++);
      this.#names.set(index, name);
    }
    return name;
  }
}

/** Whether the rows of a segment are in the index: under its id, or under that of one that it was merged into. */
function hasRowsOf(index: DayIndex, id: string): boolean {
  if (index.find(id) !== undefined) return true;
  const by = index.goneOf(id)?.by;
  return by !== undefined && index.find(by) !== undefined;
}

/** Ranges as stretches that neither touch nor overlap, ns since a base: beginnings and ends in turn. */
function united(ranges: readonly TimeRange[], baseNs: bigint): Float64Array {
  const sorted = ranges
    .map(({ fromNs, toNs }) => ({ from: Number(fromNs - baseNs), to: Number(toNs - baseNs) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from);
  const edges: number[] = [];
  for (const { from, to } of sorted) {
    const last = edges.length - 1;
    if (last >= 0 && from <= edges[last]!) edges[last] = Math.max(edges[last]!, to);
    else edges.push(from, to);
  }
  return Float64Array.from(edges);
}
