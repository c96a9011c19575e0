import { type EncodedOutcome, encodeOutcome } from "@skald/contracts";
import { isInShard, type LeafPlan, startMetricScan } from "@skald/logql";
import { emptyReadStats, placeAmong, type RunTable } from "@skald/model";
import { DayIndex, type IndexImage } from "@skald/storage";
import { LRUCache } from "lru-cache";
import { flagsOf, rangeOf, type ScanContext, streamLabels } from "../source/view.js";

/** Asks what the index of a day can count for a leaf. */
export interface CountDayTask {
  readonly plan: LeafPlan;
  /** Names the index, for as long as the process runs. */
  readonly name: string;
  readonly image: IndexImage;
  /** Times of which nothing can be counted, ns since the start of the day: beginnings and ends in turn, ascending. */
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
/** Below this share of the streams theirs are searched for in each segment, instead of a look at all. */
const fewStreams = 1 / 32;

/** The day indexes that a thread has opened. */
export class OpenIndexes {
  readonly #open = new LRUCache<string, DayIndex>({
    max: maxOpen,
    maxSize: maxOpenBytes,
    // One that is larger has all of it to itself.
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
 * Counts segments by the index of their day, each as a whole: all streams that are wanted of it lie in one window each, and in no
 * time in which something else may have the same rows.
 */
export function countDay(
  { plan, busy, tenantLabel }: Pick<CountDayTask, "plan" | "busy" | "tenantLabel">,
  day: DayIndex,
  { check }: Pick<ScanContext, "check">,
): DayCount {
  const { baseNs, counts } = day;
  const scan = startMetricScan(plan, check);
  const streams = streamLabels(day, tenantLabel);
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
  const stats = { ...emptyReadStats(), sourcesScanned: countedSegments };
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
  let low = 0;
  let high = stretches.length / 2;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (stretches[2 * middle + 1]! <= minTime) low = middle + 1;
    else high = middle;
  }
  return 2 * low < stretches.length && stretches[2 * low]! <= maxTime;
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
