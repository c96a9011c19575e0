import {
  type Budget,
  compareRows,
  type LogPartial,
  type LogPlan,
  type LogResult,
  siftRows,
  Thinning,
  timestampNs,
} from "@skald/logql";
import { paddingBytes } from "@skald/model";

/** Memory of a row besides its line. */
const rowBytes = 64;
/** Memory of a label set, and of each of its labels: its texts, and their places among all labels and those of their kind. */
const labelSetBytes = 256;
const labelBytes = 96;

/**
 * Gathers the partial answers of a log query, holds no more rows than its limit, and knows how good a row must be to
 * still matter. With an interval it holds rows of which the interval may take enough, but some thousand at most: when
 * these are too few, another merge begins behind the last row that was taken.
 */
export class LogMerge {
  readonly #plan: LogPlan;
  readonly #budget: Budget;
  #held: LogPartial[] = [];
  /** The best rows so far, best first: places in `#held`, and rows there. */
  #owner = new Uint32Array(0);
  #row = new Uint32Array(0);
  #boundNs: bigint | undefined;

  constructor(plan: LogPlan, budget: Budget) {
    this.#plan = plan;
    this.#budget = budget;
  }

  /** Throws as the budget does when the rows take too much memory. */
  add(partial: LogPartial): void {
    if (partial.rowCount === 0) return;
    this.#budget.hold(heldBytesOf(partial));
    this.#held.push(partial);
    this.#insert(this.#held.length - 1);
    if (this.#plan.intervalNs > 0n) this.#sift(partial);
    else this.#cut();
    this.#drop();
  }

  /** Rows worse than this (ns since the epoch) are no part of the result; undefined while any may be. */
  boundNs(): bigint | undefined {
    return this.#boundNs;
  }

  /** The rows of the answer; with an interval those up to the bound. The merge cannot be used afterwards. */
  result(): LogResult {
    if (this.#plan.intervalNs > 0n) {
      this.#thin();
      this.#drop();
    }
    const count = this.#row.length;
    const timestamps = new BigInt64Array(count);
    const labelSet = new Uint32Array(count);
    const firstLabel: number[] = [];
    let labels = 0;
    for (const partial of this.#held) {
      firstLabel.push(labels);
      labels += partial.labels.length;
    }
    for (let i = 0; i < count; i++) {
      const owner = this.#owner[i] as number;
      const row = this.#row[i] as number;
      const partial = this.#held[owner] as LogPartial;
      timestamps[i] = timestampNs(partial.places, row);
      labelSet[i] = (firstLabel[owner] as number) + (partial.labelSet[row] as number);
    }
    return {
      kind: "streams",
      rowCount: count,
      timestamps,
      labelSet,
      lines: {
        columns: this.#held.map(({ lines }) => lines),
        column: this.#owner,
        value: this.#row,
      },
      labels: this.#held.flatMap((partial) => partial.labels),
      warnings: [],
    };
  }

  #timeNs(at: number): bigint {
    const { places } = this.#held[this.#owner[at] as number] as LogPartial;
    return timestampNs(places, this.#row[at] as number);
  }

  /** Leaves as many rows as the answer may have. */
  #cut(): void {
    const { limit } = this.#plan;
    if (this.#row.length < limit) return;
    this.#owner = this.#owner.subarray(0, limit);
    this.#row = this.#row.subarray(0, limit);
    this.#boundNs = this.#timeNs(limit - 1);
  }

  /** Leaves the rows that the interval may take, as far as all that come before them are known. */
  #sift(added: LogPartial): void {
    if (added.truncated) this.#lowerBound(timestampNs(added.places, added.rowCount - 1));
    const sifted = siftRows(this.#plan, this.#known(), (at) => this.#timeNs(at));
    this.#leave(sifted.rows);
    if (sifted.isCut) this.#lowerBound(this.#timeNs(this.#row.length - 1));
  }

  #thin(): void {
    const thinning = new Thinning(this.#plan);
    const taken = this.#known().filter((at) => thinning.takes(this.#timeNs(at)));
    this.#leave(taken.subarray(0, this.#plan.limit));
  }

  /** Those of the best rows that are no worse than the bound. */
  #known(): Uint32Array {
    const all = this.#row.map((_, at) => at);
    return all.filter((at) => !this.#isBeyond(this.#timeNs(at)));
  }

  #leave(rows: Uint32Array): void {
    this.#owner = rows.map((at) => this.#owner[at] as number);
    this.#row = rows.map((at) => this.#row[at] as number);
  }

  #isBeyond(ns: bigint): boolean {
    const bound = this.#boundNs;
    if (bound === undefined) return false;
    return this.#plan.direction === "backward" ? ns < bound : ns > bound;
  }

  #lowerBound(ns: bigint): void {
    if (!this.#isBeyond(ns)) this.#boundNs = ns;
  }

  /** Merges the rows of a partial into the best ones. */
  #insert(added: number): void {
    const partial = this.#held[added] as LogPartial;
    const known = this.#row.length;
    const owner = new Uint32Array(known + partial.rowCount);
    const row = new Uint32Array(owner.length);
    let i = 0;
    let j = 0;
    for (let k = 0; k < owner.length; k++) {
      const fromKnown = j === partial.rowCount || (i < known && this.#isBetter(i, partial, j));
      owner[k] = fromKnown ? (this.#owner[i] as number) : added;
      row[k] = fromKnown ? (this.#row[i++] as number) : j++;
    }
    this.#owner = owner;
    this.#row = row;
  }

  /** True when the known row at `at` comes before a row of a partial. */
  #isBetter(at: number, other: LogPartial, row: number): boolean {
    const partial = this.#held[this.#owner[at] as number] as LogPartial;
    const known = this.#row[at] as number;
    const sign = this.#plan.direction === "backward" ? -1 : 1;
    return sign * compareRows(partial.places, known, other.places, row) <= 0;
  }

  /** Frees the rows that others have pushed out. */
  #drop(): void {
    const rowsOf: number[][] = this.#held.map(() => []);
    for (let i = 0; i < this.#owner.length; i++) {
      rowsOf[this.#owner[i] as number]!.push(this.#row[i] as number);
    }
    const left: LogPartial[] = [];
    const places = new Uint32Array(rowsOf.length);
    const isCopied = rowsOf.map((rows, at) => {
      const partial = this.#held[at] as LogPartial;
      places[at] = left.length;
      if (rows.length > partial.rowCount / 2) {
        left.push(partial);
        return false;
      }
      if (rows.length > 0) {
        const some = someRows(partial, rows);
        this.#budget.hold(heldBytesOf(some));
        left.push(some);
      }
      this.#budget.release(heldBytesOf(partial));
      return true;
    });
    // Rows of a partial come in its order, so that those that were copied are numbered as they come.
    const copied = new Uint32Array(rowsOf.length);
    this.#row = this.#row.map((row, i) => {
      const owner = this.#owner[i] as number;
      return isCopied[owner] ? copied[owner]!++ : row;
    });
    this.#owner = this.#owner.map((at) => places[at] as number);
    this.#held = left;
  }
}

/** Some rows of a partial, without the memory of the others. */
function someRows(partial: LogPartial, rows: readonly number[]): LogPartial {
  const { places, lines, labelSet } = partial;
  const offsets = new Uint32Array(rows.length + 1);
  rows.forEach((row, i) => {
    offsets[i + 1] = offsets[i]! + lines.offsets[row + 1]! - lines.offsets[row]!;
  });
  const bytes = new Uint8Array(offsets[rows.length]! + paddingBytes);
  rows.forEach((row, i) => {
    bytes.set(lines.bytes.subarray(lines.offsets[row], lines.offsets[row + 1]), offsets[i]);
  });
  const used = [...new Set(rows.map((row) => labelSet[row] as number))];
  const renumbered = new Map(used.map((set, i) => [set, i]));
  const columnOf = (column: Float64Array) => Float64Array.from(rows, (row) => column[row]!);
  return {
    rowCount: rows.length,
    places: {
      day: columnOf(places.day),
      time: columnOf(places.time),
      stream: columnOf(places.stream),
      sequence: columnOf(places.sequence),
      row: columnOf(places.row),
    },
    labelSet: Uint32Array.from(rows, (row) => renumbered.get(labelSet[row]!) as number),
    lines: { bytes, offsets },
    labels: used.map((set) => partial.labels[set] as LogPartial["labels"][number]),
    truncated: true,
  };
}

/** Memory of rows that a query holds, with their labels. */
function heldBytesOf({
  lines,
  labels: sets,
  rowCount,
}: Pick<LogPartial, "lines" | "labels" | "rowCount">): number {
  const labels = sets.reduce((sum, { labels: { names } }) => sum + names.length, 0);
  const ofSets = sets.length * labelSetBytes + labels * labelBytes;
  return lines.bytes.byteLength + rowCount * rowBytes + ofSets;
}
