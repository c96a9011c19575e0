import {
  type Budget,
  compareRows,
  type LogPartial,
  type LogPlan,
  type LogResult,
  mergeLogPartials,
  timestampNs,
} from "@skald/logql";
import { paddingBytes } from "@skald/model";

/** Memory of a row besides its line. */
const rowBytes = 64;

/**
 * Gathers the partial answers of a log query, holds no more rows than its limit, and knows how good a row must be to
 * still matter.
 */
export class LogMerge {
  readonly #plan: LogPlan;
  readonly #budget: Budget;
  #held: LogPartial[] = [];
  /** The best rows so far, best first: places in `#held`, and rows there. */
  #owner = new Uint32Array(0);
  #row = new Uint32Array(0);

  constructor(plan: LogPlan, budget: Budget) {
    this.#plan = plan;
    this.#budget = budget;
  }

  /** Throws as the budget does when the rows take too much memory. */
  add(partial: LogPartial): void {
    if (partial.rowCount === 0 && !partial.truncated) return;
    this.#budget.hold(bytesOf(partial));
    this.#held.push(partial);
    this.#insert(this.#held.length - 1);
    this.#drop();
  }

  /** Rows worse than this (ns since the epoch) cannot be part of the answer; undefined while any may be. */
  boundNs(): bigint | undefined {
    const { limit } = this.#plan;
    if (this.#row.length < limit) return undefined;
    const owner = this.#held[this.#owner[limit - 1] as number] as LogPartial;
    return timestampNs(owner.places, this.#row[limit - 1] as number);
  }

  result(): LogResult {
    if (this.#plan.intervalNs > 0n) return mergeLogPartials(this.#plan, this.#held);
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
      lines: this.#lines(),
      labels: this.#held.flatMap((partial) => partial.labels),
      warnings: [],
    };
  }

  #lines(): LogResult["lines"] {
    const count = this.#row.length;
    const [only] = this.#held;
    // One scan most often has all rows, in this order.
    if (this.#held.length === 1 && only?.rowCount === count) return only.lines;
    const offsets = new Uint32Array(count + 1);
    const place = (i: number) => {
      const { offsets: from, bytes } = (this.#held[this.#owner[i] as number] as LogPartial).lines;
      const row = this.#row[i] as number;
      return { bytes, from: from[row] as number, to: from[row + 1] as number };
    };
    for (let i = 0; i < count; i++) {
      const { from, to } = place(i);
      offsets[i + 1] = (offsets[i] as number) + to - from;
    }
    const length = (offsets[count] as number) + paddingBytes;
    this.#budget.hold(length);
    const bytes = new Uint8Array(length);
    for (let i = 0; i < count; i++) {
      const line = place(i);
      bytes.set(line.bytes.subarray(line.from, line.to), offsets[i]);
    }
    return { bytes, offsets };
  }

  /** Merges the rows of a partial into the best ones. */
  #insert(added: number): void {
    const { limit } = this.#plan;
    const partial = this.#held[added] as LogPartial;
    const known = this.#row.length;
    const owner = new Uint32Array(Math.min(limit, known + partial.rowCount));
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
    const kept = new Uint32Array(this.#held.length);
    for (const owner of this.#owner) kept[owner]!++;
    const places = new Uint32Array(kept.length);
    const left: LogPartial[] = [];
    this.#held.forEach((partial, at) => {
      const count = kept[at] as number;
      places[at] = left.length;
      if (count > partial.rowCount / 2) {
        left.push(partial);
        return;
      }
      if (count > 0) {
        const first = firstRows(partial, count);
        this.#budget.hold(bytesOf(first));
        left.push(first);
      }
      this.#budget.release(bytesOf(partial));
    });
    this.#owner = this.#owner.map((at) => places[at] as number);
    this.#held = left;
  }
}

/** The first rows of a partial, without the memory of the others. */
function firstRows(partial: LogPartial, count: number): LogPartial {
  const { places, lines } = partial;
  const { bytes, offsets } = lines;
  const end = offsets[count] as number;
  const kept = new Uint8Array(end + paddingBytes);
  kept.set(bytes.subarray(0, end));
  const used = [...new Set(partial.labelSet.subarray(0, count))];
  const renumbered = new Map(used.map((set, i) => [set, i]));
  return {
    rowCount: count,
    places: {
      day: places.day.slice(0, count),
      time: places.time.slice(0, count),
      stream: places.stream.slice(0, count),
      sequence: places.sequence.slice(0, count),
      row: places.row.slice(0, count),
    },
    labelSet: partial.labelSet.slice(0, count).map((set) => renumbered.get(set) as number),
    lines: { bytes: kept, offsets: offsets.slice(0, count + 1) },
    labels: used.map((set) => partial.labels[set] as LogPartial["labels"][number]),
    truncated: true,
  };
}

function bytesOf({ lines, rowCount }: LogPartial): number {
  return lines.bytes.byteLength + rowCount * rowBytes;
}
