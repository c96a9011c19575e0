import type {
  VolumeBuckets,
  VolumeCells,
  VolumeOutcome,
  VolumePlan,
  VolumeTask,
} from "@skald/contracts";
import { type ColumnNeeds, forEachStretch } from "@skald/logql";
import {
  type Block,
  emptyLabels,
  invalidArgument,
  keyOfLabels,
  type Labels,
  type ReadStats,
} from "@skald/model";
import type { LocalRef } from "@skald/storage";
import { BlockReader, onlyTimestamps, type ScanContext } from "../source/block-reader.js";
import type { OpenSource, Source } from "../source/source.js";
import {
  type Candidate,
  candidateOf,
  candidatesOf,
  countRead,
  type SourceView,
  selectionOf,
  startStats,
  viewOf,
} from "../source/view.js";
import { StreamHashes } from "./collect-streams.js";

/**
 * Counts rows and bytes, of lines and structured metadata, by labels and buckets of time. Headers count runs within one bucket.
 * Times count the rows of other runs, and in a segment each of them has the same share of the run's bytes. Runs with rows that
 * another source has are counted row by row. Throws invalid_argument when there are too many groups.
 */
export function scanVolumes(
  { plan, sources }: VolumeTask<LocalRef>,
  open: OpenSource,
  context: ScanContext,
): VolumeOutcome {
  const views = sources.map((scanned) => viewOf(open(scanned.ref), scanned, plan));
  const table = new VolumeTable(plan);
  const streams = new StreamHashes();
  const stats = startStats(views);
  let [blocks, blockBytes] = [0, 0];
  for (const view of views) {
    const scan = { table, plan, view, stats, context };
    const { cut, counted, shared, lineBytes } = countRuns(scan);
    const counting = new Set(counted);
    countRows(scan, cut, counting);
    countRows(scan, shared, counting, wholeRows);
    blocks += counting.size;
    blockBytes += lineBytes;
    if (plan.countsStreams) addStreams(streams, view, table);
  }
  return { ...table.finish(), blocks, blockBytes, streams: streams.take(), stats };
}

/** Finds the blocks with runs that headers cannot count: those that buckets cut, and those that may be read row by row. */
export function cutBlocks(
  view: SourceView,
  plan: VolumePlan,
  { check }: Pick<ScanContext, "check">,
) {
  const cursor = new Buckets(plan, view.source.baseNs);
  const cut: Candidate[] = [];
  const shared: Candidate[] = [];
  for (const candidate of candidatesOf(view, plan)) {
    check();
    const { block, runs } = candidate;
    const { minTime, maxTime } = view.source.runs(block);
    if (view.excludedOf(block) !== undefined) shared.push(candidate);
    else if (runs.some((run) => !cursor.holds(minTime[run]!, maxTime[run]!))) cut.push(candidate);
  }
  return { cut, shared };
}

interface VolumeScan {
  readonly table: VolumeTable;
  readonly plan: VolumePlan;
  readonly view: SourceView;
  readonly stats: ReadStats;
  readonly context: ScanContext;
}

/** What rows are measured by that another source has in part. */
export const wholeRows: ColumnNeeds = { timestamps: true, lines: true, metadata: true };

/**
 * Counts runs from headers. Returns the blocks with such runs, those with runs that buckets cut, those with runs of which
 * another source has some rows, and the bytes of lines of all of them.
 */
function countRuns({ table, plan, view, stats, context }: VolumeScan) {
  const { source } = view;
  const cursor = new Buckets(plan, source.baseNs);
  const cut: Candidate[] = [];
  const shared: Candidate[] = [];
  const counted: number[] = [];
  let lineBytes = 0;
  table.open(view);
  for (const { block, runs, ...candidate } of candidatesOf(view, plan, { stats })) {
    context.check();
    lineBytes += candidate.lineBytes;
    const header = source.runs(block);
    const hasExcluded = view.excludedOf(block) !== undefined;
    const metadata = metadataBytesOf(source, block);
    const others: number[] = [];
    const left = runs.filter((run) => {
      const isWithin = cursor.holds(header.minTime[run]!, header.maxTime[run]!);
      const rows = header.rowStart[run + 1]! - header.rowStart[run]!;
      const excluded = hasExcluded ? view.excludedIn(block, run) : 0;
      if (excluded > 0 && excluded < rows) {
        others.push(run);
        return false;
      }
      if (!isWithin) return true;
      const bytes = header.lineBytes[run]! + (metadata?.[run] ?? 0);
      const isCounted = excluded === 0;
      table.add(header.stream[run]!, cursor.bucket, isCounted ? rows : 0, isCounted ? bytes : 0);
      return false;
    });
    if (left.length + others.length < runs.length) counted.push(block);
    if (left.length > 0) cut.push(candidateOf(block, left, header));
    if (others.length > 0) shared.push(candidateOf(block, Uint32Array.from(others), header));
  }
  return { cut, counted, shared, lineBytes };
}

function metadataBytesOf(source: Source, block: number): Float64Array | undefined {
  return source.metadataNames(block).length === 0 ? undefined : source.metadataBytes(block);
}

/**
 * Counts the rows of runs that lie in several buckets, or partly outside the range, by their times: each by its own bytes when
 * they are in memory or read, else by its share of the run.
 */
function countRows(
  { table, plan, view, stats, context }: VolumeScan,
  cut: readonly Candidate[],
  counted: Set<number>,
  needs: ColumnNeeds = onlyTimestamps,
): void {
  const { source } = view;
  const cursor = new Buckets(plan, source.baseNs);
  const reader = new BlockReader(source, needs, cut, context.memory);
  try {
    for (const candidate of cut) {
      context.check();
      const { block } = candidate;
      const read = reader.read(block);
      const times = read.timestamps();
      const isExact = source.kind === "head" || needs.lines;
      const offsets = isExact ? read.lines().offsets : undefined;
      const pairs = isExact ? metadataOffsetsOf(source, read, block) : undefined;
      const metadata = isExact ? undefined : metadataBytesOf(source, block);
      const { stream, rowStart, lineBytes } = source.runs(block);
      forEachStretch(
        { runs: source.runs(block) },
        selectionOf(view, candidate),
        (run, from, to) => {
          const runBytes = lineBytes[run]! + (metadata?.[run] ?? 0);
          const share = runBytes / (rowStart[run + 1]! - rowStart[run]!);
          for (let row = from; row < to; ) {
            const isAsked = cursor.seek(times[row]!);
            const first = row++;
            while (row < to && cursor.isSame(times[row]!)) row++;
            if (!isAsked) continue;
            const own = pairs === undefined ? 0 : pairs[row]! - pairs[first]!;
            const bytes =
              offsets === undefined ? share * (row - first) : offsets[row]! - offsets[first]! + own;
            table.add(stream[run]!, cursor.bucket, row - first, bytes);
            counted.add(block);
          }
        },
      );
      countRead(stats, view, candidate, needs.lines);
    }
  } finally {
    reader.close();
  }
}

/** Bytes of the structured metadata of all rows before each row of a block; undefined when it has none. */
function metadataOffsetsOf(source: Source, read: Block, block: number): Float64Array | undefined {
  const names = source.metadataNames(block);
  if (names.length === 0) return undefined;
  if (source.metadataOffsets !== undefined) return source.metadataOffsets(block);
  const sums = new Float64Array(read.rowCount + 1);
  for (const name of names) {
    const column = read.metadata(name);
    if (column === undefined) continue;
    const codes = column.kind === "dictionary" ? column.codes : undefined;
    const { offsets } = column.kind === "dictionary" ? column.dictionary : column;
    const nameBytes = Buffer.byteLength(name);
    for (let row = 0; row < read.rowCount; row++) {
      const at = codes === undefined ? row : codes[row]!;
      const length = offsets[at + 1]! - offsets[at]!;
      if (length > 0) sums[row + 1]! += nameBytes + length;
    }
  }
  for (let row = 0; row < read.rowCount; row++) sums[row + 1]! += sums[row]!;
  return sums;
}

function addStreams(streams: StreamHashes, { source, selected }: SourceView, table: VolumeTable) {
  const { hashes } = source.streams;
  for (const stream of selected) {
    if (table.has(stream)) streams.add(hashes[2 * stream]!, hashes[2 * stream + 1]!);
  }
}

/** Finds the buckets of times of a day exactly, however far away the first bucket is. */
class Buckets {
  /** The bucket of the last time that was sought. */
  bucket = 0;
  readonly #from: number;
  readonly #to: number;
  readonly #step: number;
  /** The bucket of midnight, and the time from its start to midnight. */
  readonly #first: number;
  readonly #shift: number;
  #low = 0;
  #high = 0;

  constructor({ fromNs, toNs, buckets }: VolumePlan, baseNs: bigint) {
    const { firstNs, stepNs }: VolumeBuckets = buckets;
    const behind = baseNs - firstNs;
    const shift = ((behind % stepNs) + stepNs) % stepNs;
    this.#from = Number(fromNs - baseNs);
    this.#to = Number(toNs - baseNs);
    this.#step = Number(stepNs);
    this.#first = Number((behind - shift) / stepNs);
    this.#shift = Number(shift);
  }

  /** Finds the bucket of a time; false for a time outside the range. */
  seek(time: number): boolean {
    if (time < this.#from || time >= this.#to) {
      this.#low = time < this.#from ? Number.NEGATIVE_INFINITY : this.#to;
      this.#high = time < this.#from ? this.#from : Number.POSITIVE_INFINITY;
      return false;
    }
    const step = Math.floor((time + this.#shift) / this.#step);
    this.bucket = this.#first + step;
    this.#low = Math.max(this.#from, step * this.#step - this.#shift);
    this.#high = Math.min(this.#to, (step + 1) * this.#step - this.#shift);
    return true;
  }

  /** True for times in the bucket of the last time. */
  isSame(time: number): boolean {
    return time >= this.#low && time < this.#high;
  }

  /** True when both times, and so all times between them, are in one bucket. */
  holds(minTime: number, maxTime: number): boolean {
    if (!this.seek(minTime)) return false;
    const { bucket } = this;
    return this.seek(maxTime) && this.bucket === bucket;
  }
}

/** Counts rows of streams by group and bucket. */
class VolumeTable {
  readonly #plan: VolumePlan;
  readonly #counts: VolumeCounts;
  /** Groups by label set; streams of the current source share label sets. */
  #groupsOfLabels = new Map<Labels, readonly number[]>();
  /** Groups of the streams of the current source that have rows. */
  #groupsOfStream: (readonly number[] | undefined)[] = [];
  #labelsOf: (stream: number) => Labels = () => emptyLabels;

  constructor(plan: VolumePlan) {
    this.#plan = plan;
    this.#counts = new VolumeCounts(plan);
  }

  /** Begins with a source. What follows adds streams of this source. */
  open({ streams }: SourceView): void {
    const { names } = this.#plan.groupBy;
    this.#groupsOfStream = [];
    this.#groupsOfLabels = new Map();
    this.#labelsOf = names === undefined ? streams : (streams.only?.(names) ?? streams);
  }

  add(stream: number, bucket: number, rows: number, bytes: number): void {
    if (rows === 0) return;
    const groups = this.#groupsOf(stream);
    for (let i = 0; i < groups.length; i++) this.#counts.add(groups[i]!, bucket, rows, bytes);
  }

  /** Whether a stream of the current source was added. */
  has(stream: number): boolean {
    return this.#groupsOfStream[stream] !== undefined;
  }

  finish(): Omit<VolumeCells, "blocks" | "blockBytes"> {
    return this.#counts.finish();
  }

  #groupsOf(stream: number): readonly number[] {
    let groups = this.#groupsOfStream[stream];
    if (groups === undefined) {
      const labels = this.#labelsOf(stream);
      groups = this.#groupsOfLabels.get(labels) ?? this.#groupsIn(labels);
      this.#groupsOfLabels.set(labels, groups);
      this.#groupsOfStream[stream] = groups;
    }
    return groups;
  }

  #groupsIn(labels: Labels): readonly number[] {
    if (this.#plan.groupBy.kind === "series") return [this.#counts.groupOf(labels)];
    return labels.names.map((name) => this.#counts.groupOf({ names: [name], values: [""] }));
  }
}

/** Rows and bytes by group and bucket. */
export class VolumeCounts {
  readonly #plan: Pick<VolumePlan, "buckets" | "maxGroups">;
  readonly #groups: Labels[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #cells = new Map<number, { rows: number; bytes: number }>();

  constructor(plan: Pick<VolumePlan, "buckets" | "maxGroups">) {
    this.#plan = plan;
  }

  /** Numbers a group. Throws invalid_argument when there are too many. */
  groupOf(labels: Labels): number {
    const key = keyOfLabels(labels);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const { maxGroups } = this.#plan;
    if (this.#groups.length >= maxGroups) {
      throw invalidArgument(
        `the query hit the max number of series limit (limit: ${maxGroups} series)`,
      );
    }
    this.#numbers.set(key, this.#groups.length);
    return this.#groups.push(labels) - 1;
  }

  add(group: number, bucket: number, rows: number, bytes: number): void {
    const key = group * this.#plan.buckets.count + bucket;
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { rows, bytes });
    else {
      cell.rows += rows;
      cell.bytes += bytes;
    }
  }

  finish(): Omit<VolumeCells, "blocks" | "blockBytes"> {
    const { count } = this.#plan.buckets;
    const keys = [...this.#cells.keys()];
    const cells = [...this.#cells.values()];
    return {
      groups: this.#groups,
      group: Uint32Array.from(keys, (key) => Math.floor(key / count)),
      bucket: Uint32Array.from(keys, (key) => key % count),
      rows: Float64Array.from(cells, ({ rows }) => rows),
      bytes: Float64Array.from(cells, ({ bytes }) => bytes),
    };
  }
}
