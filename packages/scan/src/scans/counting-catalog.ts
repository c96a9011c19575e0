import {
  type CallOptions,
  type Catalog,
  type CatalogCounts,
  type CatalogRequest,
  type CountRequest,
  type EncodedOutcome,
  encodeOutcome,
  type ScanOptions,
} from "@skald/contracts";
import { isInShard, type LeafPlan, startMetricScan } from "@skald/logql";
import {
  emptyReadStats,
  firstIndex,
  placeAmong,
  type RunTable,
  type SegmentRef,
  type TimeRange,
} from "@skald/model";
import { DayIndex, type DayView, type IndexImage, type SegmentCatalog } from "@skald/storage";
import { LRUCache } from "lru-cache";
import type { ScanContext } from "../source/block-reader.js";
import { flagsOf, rangeOf, streamLabels } from "../source/view.js";

interface CountingCatalogDeps {
  readonly catalog: Pick<SegmentCatalog, "list" | "days">;
  /** Counts on another thread. */
  readonly countDay: (task: CountDayTask, options: ScanOptions) => Promise<DayCount>;
  /** Up to this many streams and segments are counted on this thread, because asking another thread takes longer; 1024 when absent. */
  readonly maxHere?: number;
}

const defaultMaxHere = 1024;
/** Bytes of lines that take as long to read as one stream of a segment takes to count. */
const streamCost = 64;

/** A catalog that counts whole segments by the index of their day. */
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

/** Whether the index has the rows of a segment: under its id, or under the id of the segment it was merged into. */
function hasRowsOf(index: DayIndex, id: string): boolean {
  if (index.find(id) !== undefined) return true;
  const by = index.goneOf(id)?.by;
  return by !== undefined && index.find(by) !== undefined;
}

/** Ranges as stretches that neither touch nor overlap, ns since a base: starts and ends in turn. */
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

/** Asks for what the index of a day can count for a leaf. */
export interface CountDayTask {
  readonly plan: LeafPlan;
  /** Names the index, for as long as the process runs. */
  readonly name: string;
  readonly image: IndexImage;
  /** Times in which nothing can be counted, ns since the start of the day: starts and ends in turn, ascending. */
  readonly busy: Float64Array;
  /** Adds `__tenant_id__` to every stream. */
  readonly tenantLabel?: string | undefined;
}

export interface DayCount {
  /** Places in the index of the segments that have to be scanned. */
  readonly left: Uint32Array;
  readonly countedSegments: number;
  readonly outcome: EncodedOutcome;
}

/** Day indexes that a thread keeps open, and bytes of their images, which threads share. */
const maxOpen = 100;
const maxOpenBytes = 128 * 1024 * 1024;
/** Below this share of the streams, each stream is searched for in a segment instead of looking at every run. */
const fewStreams = 1 / 32;

/** The day indexes that a thread has opened. */
export class OpenIndexes {
  readonly #open = new LRUCache<string, DayIndex>({
    max: maxOpen,
    maxSize: maxOpenBytes,
    // An index that is larger takes all of it.
    sizeCalculation: ({ image }) => Math.min(image.byteLength, maxOpenBytes),
  });

  of({ name, image }: Pick<CountDayTask, "name" | "image">): DayIndex {
    let day = this.#open.get(name);
    if (day === undefined) {
      day = new DayIndex(image);
      this.#open.set(name, day);
    }
    return day;
  }
}

/**
 * Counts whole segments by the index of their day. A segment counts when all of its wanted streams lie in one window each, and in no
 * time in which another source may have the same rows.
 */
export function countDay(
  { plan, busy, tenantLabel }: Pick<CountDayTask, "plan" | "busy" | "tenantLabel">,
  day: DayIndex,
  { check }: Pick<ScanContext, "check">,
): DayCount {
  const { baseNs, counts } = day;
  const scan = startMetricScan(plan, check);
  const streams = streamLabels(day.streams, tenantLabel);
  const range = rangeOf(plan);
  const from = Number(range.fromNs - baseNs);
  const to = Number(range.toNs - baseNs);
  const wanted = wantedStreams(day, plan);
  const runsOf = runFinder(wanted, day.streams.count);
  const left: number[] = [];
  let countedSegments = 0;
  for (const place of day.select(range, plan.matchers)) {
    check();
    const table = counts.of(place);
    if (table === undefined) {
      left.push(place);
      continue;
    }
    const { minTime, maxTime } = table;
    const block = { baseNs, metadataNames: counts.metadataNames(place) };
    const runs = runsOf(table).filter((run) => maxTime[run]! >= from && minTime[run]! < to);
    const isCounted = runs.every((run) => {
      const times = { minTime: minTime[run]!, maxTime: maxTime[run]! };
      return counts.isAlone(place, run) && !meets(busy, times) && scan.countsRun(block, times);
    });
    if (!isCounted) left.push(place);
    else if (runs.length > 0) {
      for (const run of runs) scan.addRun(streams, block, headerOf(table, run));
      countedSegments++;
    }
  }
  const counted = { blocks: countedSegments, countedBlocks: countedSegments };
  const stats = { ...emptyReadStats(), sourcesScanned: countedSegments, ...counted };
  const outcome = { partial: scan.finish(), stats, streams: wanted.length };
  return { left: Uint32Array.from(left), countedSegments, outcome: encodeOutcome(outcome) };
}

function wantedStreams({ streams }: DayIndex, { matchers, shard }: LeafPlan): Uint32Array {
  const matched = streams.match(matchers);
  return shard === undefined
    ? matched
    : matched.filter((stream) => isInShard(shard, streams.text(stream)));
}

/** Finds the runs of some streams, ascending, in the tables of segments. */
function runFinder(wanted: Uint32Array, count: number): (table: RunTable) => number[] {
  if (wanted.length < count * fewStreams) {
    return ({ stream }) => {
      const runs: number[] = [];
      for (const one of wanted) {
        const run = placeAmong(stream, one);
        if (run >= 0) runs.push(run);
      }
      return runs;
    };
  }
  const flags = flagsOf(wanted, count);
  return ({ stream }) => {
    const runs: number[] = [];
    for (let run = 0; run < stream.length; run++) if (flags[stream[run]!] === 1) runs.push(run);
    return runs;
  };
}

/** Whether times, both inclusive, touch one of the stretches. */
function meets(
  stretches: Float64Array,
  { minTime, maxTime }: { readonly minTime: number; readonly maxTime: number },
): boolean {
  const next = firstIndex(0, stretches.length / 2, (i) => stretches[2 * i + 1]! > minTime);
  return 2 * next < stretches.length && stretches[2 * next]! <= maxTime;
}

function headerOf(table: RunTable, run: number) {
  return {
    stream: table.stream[run]!,
    rows: table.rowStart[run + 1]! - table.rowStart[run]!,
    minTime: table.minTime[run]!,
    maxTime: table.maxTime[run]!,
    lineBytes: table.lineBytes[run]!,
  };
}
