import { grown } from "@skald/kernels";
import {
  type BytesColumn,
  dayNs,
  formatLabels,
  freeBytes,
  type Labels,
  paddingBytes,
} from "@skald/model";
import type { Direction, FoundLines, LogPlan, LogResult, RowLabels } from "../plan/plan.js";

const initialRows = 64;
const initialBytes = 4096;

/**
 * Where a row stands among all rows of a query; `day` counts UTC days since the epoch, `time` is ns within it, `stream` is
 * the key of its stream.
 */
export interface RowPlace {
  readonly day: number;
  readonly time: number;
  readonly stream: number;
  readonly sequence: number;
  readonly row: number;
  readonly labelSet: number;
}

/** Places of rows in columns. */
export interface RowPlaces {
  readonly day: Float64Array;
  readonly time: Float64Array;
  readonly stream: Float64Array;
  readonly sequence: Float64Array;
  readonly row: Float64Array;
}

/** The best rows of one scan, best first: plain data. */
export interface LogPartial {
  readonly rowCount: number;
  readonly places: RowPlaces;
  /** Index into `labels`. */
  readonly labelSet: Uint32Array;
  readonly lines: BytesColumn;
  readonly labels: readonly RowLabels[];
  /** True when rows worse than the last one may have been left out: behind the limit, or behind `scanBytes` of the plan. */
  readonly truncated: boolean;
}

/**
 * The one order of log rows: by time, then by stream, then as they came: by source and block, and as they stand in the
 * block. Negative when row i of the first comes before row j of the second; with the sign changed it is the order of a
 * backward query.
 */
export function compareRows(a: RowPlaces, i: number, b: RowPlaces, j: number): number {
  return (
    a.day[i]! - b.day[j]! ||
    a.time[i]! - b.time[j]! ||
    a.stream[i]! - b.stream[j]! ||
    a.sequence[i]! - b.sequence[j]! ||
    a.row[i]! - b.row[j]!
  );
}

/** ns since the epoch of a row. */
export function timestampNs({ day, time }: RowPlaces, at: number): bigint {
  return BigInt(day[at]!) * dayNs + BigInt(time[at]!);
}

/** A growing store of rows in columns, with the bytes of their lines. */
export class RowStore implements RowPlaces {
  count = 0;
  /** The lines, one behind the other. */
  readonly bytes: ByteStore;
  day: Float64Array;
  time: Float64Array;
  stream: Float64Array;
  sequence: Float64Array;
  row: Float64Array;
  #labelSet: Uint32Array;
  #lineStart: Uint32Array;
  /** Pieces of `bytes`. */
  #linePiece: Uint32Array;

  /** Starts with room for these rows and bytes of lines, and grows when there are more. */
  constructor(rows = initialRows, lineBytes = initialBytes) {
    this.bytes = new ByteStore(lineBytes);
    this.day = new Float64Array(rows);
    this.time = new Float64Array(rows);
    this.stream = new Float64Array(rows);
    this.sequence = new Float64Array(rows);
    this.row = new Float64Array(rows);
    this.#labelSet = new Uint32Array(rows);
    this.#lineStart = new Uint32Array(rows + 1);
    this.#linePiece = new Uint32Array(rows);
  }

  push(place: RowPlace, line: Uint8Array): void {
    if (this.count === this.row.length) this.#grow();
    const at = this.count++;
    this.day[at] = place.day;
    this.time[at] = place.time;
    this.stream[at] = place.stream;
    this.sequence[at] = place.sequence;
    this.row[at] = place.row;
    this.#labelSet[at] = place.labelSet;
    this.#linePiece[at] = this.bytes.push(line);
    this.#lineStart[at + 1] = this.bytes.length;
  }

  /**
   * Moves some rows, in an order, to a store of their own, whose lines lie in one piece. This one gives its memory back
   * meanwhile, and has no lines afterwards.
   */
  moved(order: Uint32Array, labelSetOf: (labelSet: number) => number): RowStore {
    let lineBytes = 0;
    const left = this.bytes.pieces.map(() => 0);
    for (const at of order) {
      lineBytes += this.lineBytes(at);
      left[this.#linePiece[at]!]!++;
    }
    for (const [piece, bytes] of this.bytes.pieces.entries())
      if (left[piece] === 0) freeBytes(bytes);
    const store = new RowStore(order.length, lineBytes);
    for (const at of order) {
      const place = this.place(at);
      store.push({ ...place, labelSet: labelSetOf(place.labelSet) }, this.line(at));
      const piece = this.#linePiece[at]!;
      if (--left[piece]! === 0) freeBytes(this.bytes.pieces[piece]!);
    }
    return store;
  }

  place(at: number): RowPlace {
    return {
      day: this.day[at]!,
      time: this.time[at]!,
      stream: this.stream[at]!,
      sequence: this.sequence[at]!,
      row: this.row[at]!,
      labelSet: this.#labelSet[at]!,
    };
  }

  line(at: number): Uint8Array {
    return this.bytes.slice(this.#linePiece[at]!, this.#lineStart[at]!, this.#lineStart[at + 1]!);
  }

  lineBytes(at: number): number {
    return this.#lineStart[at + 1]! - this.#lineStart[at]!;
  }

  timestampNs(at: number): bigint {
    return timestampNs(this, at);
  }

  /** As columns, which are the store's own; so are `labelSets` and `lines`. */
  places(): RowPlaces {
    const used = (column: Float64Array) => column.subarray(0, this.count);
    return {
      day: used(this.day),
      time: used(this.time),
      stream: used(this.stream),
      sequence: used(this.sequence),
      row: used(this.row),
    };
  }

  /** Numbers of the rows, best first in a direction. */
  order(direction: Direction): Uint32Array {
    const order = new Uint32Array(this.count);
    for (let i = 0; i < order.length; i++) order[i] = i;
    const sign = direction === "forward" ? 1 : -1;
    return order.sort((a, b) => sign * compareRows(this, a, this, b) || a - b);
  }

  timestamps(): BigInt64Array {
    const out = new BigInt64Array(this.count);
    for (let i = 0; i < out.length; i++) out[i] = this.timestampNs(i);
    return out;
  }

  labelSets(): Uint32Array {
    return this.#labelSet.subarray(0, this.count);
  }

  /** Of rows that were moved here, and no others. */
  lines(): BytesColumn {
    return { bytes: this.bytes.padded(), offsets: this.#lineStart.subarray(0, this.count + 1) };
  }

  #grow(): void {
    const length = Math.max(initialRows, this.row.length * 2);
    this.day = grown(this.day, length);
    this.time = grown(this.time, length);
    this.stream = grown(this.stream, length);
    this.sequence = grown(this.sequence, length);
    this.row = grown(this.row, length);
    this.#labelSet = grown(this.#labelSet, length);
    this.#lineStart = grown(this.#lineStart, length + 1);
    this.#linePiece = grown(this.#linePiece, length);
  }
}

/** Bytes appended one after the other, in pieces, so that no growth copies what is there. */
class ByteStore {
  length = 0;
  readonly pieces: Uint8Array[];
  /** Where each piece begins. */
  readonly #starts = [0];

  constructor(capacity: number) {
    this.pieces = [new Uint8Array(capacity + paddingBytes)];
  }

  /** Appends bytes, all to one piece; gives its number. */
  push(bytes: Uint8Array): number {
    let last = this.pieces.length - 1;
    const { length } = this.pieces[last]!;
    if (this.length - this.#starts[last]! + bytes.length + paddingBytes > length) {
      const size = Math.max(bytes.length + paddingBytes, 2 * length);
      last = this.pieces.push(new Uint8Array(size)) - 1;
      this.#starts.push(this.length);
    }
    this.pieces[last]!.set(bytes, this.length - this.#starts[last]!);
    this.length += bytes.length;
    return last;
  }

  slice(piece: number, from: number, to: number): Uint8Array {
    const start = this.#starts[piece]!;
    return this.pieces[piece]!.subarray(from - start, to - start);
  }

  /** The first piece, with padding behind. */
  padded(): Uint8Array {
    return this.pieces[0]!.subarray(0, this.length + paddingBytes);
  }
}

/**
 * The answer of a log query from the partials of all its scans: rows in the direction of the query, thinned by the interval,
 * then cut at the limit. With an interval no partial may be truncated.
 */
export function mergeLogPartials(plan: LogPlan, partials: readonly LogPartial[]): LogResult {
  const labels = new LabelSets();
  const all = new RowStore();
  for (const partial of partials) addRows(all, partial, labels);
  const rows = all.moved(thin(plan, all).subarray(0, plan.limit), (set) => set);
  return {
    kind: "streams",
    rowCount: rows.count,
    timestamps: rows.timestamps(),
    labelSet: rows.labelSets(),
    lines: linesOf(rows.lines()),
    labels: labels.sets,
    warnings: [],
  };
}

/** Label sets without repetition, by their labels and their origins. */
class LabelSets {
  readonly sets: RowLabels[] = [];
  readonly #byText = new Map<string, number>();

  find(set: RowLabels): number {
    const { labels, categories } = set;
    const { stream, structuredMetadata, parsed } = categories;
    const text = [labels, stream, structuredMetadata, parsed].map(formatLabels).join();
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    this.#byText.set(text, this.sets.length);
    return this.sets.push(set) - 1;
  }
}

function addRows(store: RowStore, partial: LogPartial, labels: LabelSets): void {
  const { bytes, offsets } = partial.lines;
  const renumbered = partial.labels.map((set) => labels.find(set));
  const { day, time, stream, sequence, row } = partial.places;
  for (let i = 0; i < partial.rowCount; i++) {
    const place = {
      day: day[i]!,
      time: time[i]!,
      stream: stream[i]!,
      sequence: sequence[i]!,
      row: row[i]!,
      labelSet: renumbered[partial.labelSet[i]!]!,
    };
    store.push(place, bytes.subarray(offsets[i]!, offsets[i + 1]!));
  }
}

/** The rows in the order of the query that its interval takes: all of them without one. */
function thin(plan: LogPlan, rows: RowStore): Uint32Array {
  const order = rows.order(plan.direction);
  if (plan.intervalNs === 0n) return order;
  const thinning = new Thinning(plan);
  return order.filter((at) => thinning.takes(rows.timestampNs(at)));
}

/** The rows of one stream of a result: numbers of its rows, in the order of the result. */
export interface ResultStream {
  readonly labels: Labels;
  readonly rows: Uint32Array;
}

/**
 * Groups the rows of a result into streams sorted by label text: by all labels, or by the labels of the stored
 * streams when the others are shown row by row.
 */
export function groupLogRows(result: LogResult, by: "all" | "stream"): ResultStream[] {
  const textOfSet = result.labels.map(({ labels, categories }) =>
    formatLabels(by === "all" ? labels : categories.stream),
  );
  const streams = new Map<string, { labels: Labels; rows: number[] }>();
  for (let row = 0; row < result.rowCount; row++) {
    const set = result.labelSet[row]!;
    const text = textOfSet[set]!;
    const known = streams.get(text);
    if (known !== undefined) {
      known.rows.push(row);
      continue;
    }
    const { labels, categories } = result.labels[set]!;
    streams.set(text, { labels: by === "all" ? labels : categories.stream, rows: [row] });
  }
  const sorted = [...streams].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.map(([, { labels, rows }]) => ({ labels, rows: Uint32Array.from(rows) }));
}

/** One result of several that follow each other in the direction of the query, with its first `limit` rows. */
export function joinLogResults(results: readonly LogResult[], limit: number): LogResult {
  const rowCount = Math.min(
    limit,
    results.reduce((n, result) => n + result.rowCount, 0),
  );
  const timestamps = new BigInt64Array(rowCount);
  const labelSet = new Uint32Array(rowCount);
  const columns: BytesColumn[] = [];
  const column = new Uint32Array(rowCount);
  const value = new Uint32Array(rowCount);
  const labels: LogResult["labels"][number][] = [];
  let row = 0;
  for (const { lines, ...result } of results) {
    const taken = Math.min(result.rowCount, rowCount - row);
    if (taken === 0) continue;
    timestamps.set(result.timestamps.subarray(0, taken), row);
    value.set(lines.value.subarray(0, taken), row);
    for (let i = 0; i < taken; i++) {
      labelSet[row + i] = labels.length + (result.labelSet[i] as number);
      column[row + i] = columns.length + (lines.column[i] as number);
    }
    for (const set of result.labels) labels.push(set);
    for (const one of lines.columns) columns.push(one);
    row += taken;
  }
  const warnings = [...new Set(results.flatMap((result) => result.warnings))];
  const lines = { columns, column, value };
  return { kind: "streams", rowCount, timestamps, labelSet, lines, labels, warnings };
}

/** Rows that a scan, or a merge of scans, holds for an interval at least, so that few of them say nothing of the next interval. */
const minHeldRows = 1000;

/**
 * Goes through the rows of a query with an interval, best first, and takes the first one, and then each that lies at least the
 * interval behind the last one taken.
 */
export class Thinning {
  /** Rows taken so far. */
  taken = 0;
  readonly #plan: LogPlan;
  /** Where the next row may lie: ns from the end of the range at which the rows begin, as are all distances. */
  #nextNs = 0n;

  constructor(plan: LogPlan) {
    this.#plan = plan;
  }

  /** True for a row that is taken. */
  takes(timeNs: bigint): boolean {
    const distanceNs = this.#distanceTo(timeNs);
    if (distanceNs < this.#nextNs) return false;
    this.#nextNs = distanceNs + this.#plan.intervalNs;
    this.taken++;
    return true;
  }

  /**
   * True for a row that is taken, or may be when more rows are known. These move the rows that are taken towards the beginning,
   * but the k-th stays k - 1 intervals away from it: a row is out of the question when a row was taken before it for each
   * interval that has begun.
   */
  mayTake(timeNs: bigint): boolean {
    if (this.takes(timeNs)) return true;
    const distanceNs = this.#distanceTo(timeNs);
    if (distanceNs === this.#nextNs - this.#plan.intervalNs) return false;
    return distanceNs / this.#plan.intervalNs >= BigInt(this.taken);
  }

  #distanceTo(timeNs: bigint): bigint {
    const { direction, fromNs, toNs } = this.#plan;
    return direction === "forward" ? timeNs - fromNs : toNs - 1n - timeNs;
  }
}

/**
 * Keeps the rows, given in the order of the query, that its interval may take. `isCut` when more may follow the last of them:
 * enough are taken, or more are too many to hold.
 */
export function siftRows(
  plan: LogPlan,
  rows: Uint32Array,
  timeOf: (row: number) => bigint,
): { readonly rows: Uint32Array; readonly isCut: boolean } {
  const most = Math.max(plan.limit, minHeldRows);
  const thinning = new Thinning(plan);
  let count = 0;
  const kept = new Uint32Array(Math.min(most, rows.length));
  for (const row of rows) {
    if (thinning.taken === plan.limit) break;
    if (!thinning.mayTake(timeOf(row))) continue;
    if (count === most) return { rows: kept, isCut: true };
    kept[count++] = row;
  }
  return { rows: kept.subarray(0, count), isCut: thinning.taken === plan.limit };
}

/** All values of one column, in its order. */
export function linesOf(column: BytesColumn): FoundLines {
  const value = Uint32Array.from({ length: column.offsets.length - 1 }, (_, i) => i);
  return { columns: [column], column: new Uint32Array(value.length), value };
}

/** The bytes of a line, in the memory of its column. */
export function lineAt({ columns, column, value }: FoundLines, row: number): Uint8Array {
  const { bytes, offsets } = columns[column[row]!]!;
  return bytes.subarray(offsets[value[row]!], offsets[value[row]! + 1]);
}

/** Bytes that the lines keep in memory. */
export function lineMemory({ columns }: FoundLines): number {
  return columns.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}

/** The lines as one column: a copy, unless they are that already. */
export function joinLines(lines: FoundLines): BytesColumn {
  const { columns, value } = lines;
  const [only] = columns;
  const isWhole = columns.length === 1 && only?.offsets.length === value.length + 1;
  if (isWhole && value.every((at, i) => at === i)) return only;
  const offsets = new Uint32Array(value.length + 1);
  for (let i = 0; i < value.length; i++) offsets[i + 1] = offsets[i]! + lineAt(lines, i).length;
  const bytes = new Uint8Array(offsets[value.length]! + paddingBytes);
  for (let i = 0; i < value.length; i++) bytes.set(lineAt(lines, i), offsets[i]);
  return { bytes, offsets };
}
