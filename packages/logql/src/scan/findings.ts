import type { RowSelection } from "@skald/kernels";
import type { Labels } from "@skald/model";
import type { RowBatch } from "../pipeline/pipeline.js";
import type { LeafPlan, LogPlan } from "../plan/plan.js";
import { factsOf } from "../syntax/ast.js";
import { printLabelFilter } from "../syntax/print-filter.js";
import { printStage } from "../syntax/stages.js";

/**
 * What the stages of a query made of rows of some blocks: which passed, and for a leaf in which series, with which values. Sealed blocks
 * never change, so that it holds for every later scan with the same stages. Plain data in shared memory.
 */
export interface Findings {
  /** Numbers of the blocks in their segment. */
  readonly blocks: Uint32Array;
  /** Where the words of each block begin, and the end: a bit for each of its rows. */
  readonly wordStart: Uint32Array;
  /** The rows that went through the stages. */
  readonly seen: Uint32Array;
  /** Those of them that passed. */
  readonly passed: Uint32Array;
  /** Where the passed rows of each block begin, and the end. */
  readonly passedStart: Uint32Array;
  /** Places in `labels` by passed row; empty when there is one series. */
  readonly series: Uint16Array;
  /** By passed row, if the leaf unwraps. */
  readonly values: Float64Array;
  /** Label sets of series. */
  readonly labels: readonly Labels[];
}

/**
 * Names what the findings of a plan depend on besides the block. Undefined for a leaf that needs more of a row than findings tell, for a
 * log query that keeps every row, and where each query finds something else: templates may ask for the time.
 */
export function findingsKey(plan: LeafPlan | LogPlan): string | undefined {
  if ("log" in plan) {
    const { stages } = plan.log;
    const filters = stages.slice(0, stages.findLastIndex((stage) => factsOf(stage).filters) + 1);
    const isKept = filters.length > 0 && !filters.some((stage) => factsOf(stage).hasTemplate);
    return isKept ? JSON.stringify(filters.map(printStage)) : undefined;
  }
  const { stages, unwrap, grouping, labelsRead, extract, mode } = plan;
  if (mode === "bytes" || stages.some((stage) => factsOf(stage).hasTemplate)) return undefined;
  const filters = unwrap?.filters.map(printLabelFilter);
  const series = [grouping, labelsRead, extract];
  return JSON.stringify([stages.map(printStage), { ...unwrap, filters }, ...series]);
}

/** Scans that read fewer blocks leave nothing: they are fast anyway. */
const minBlocks = 4;
const maxSeries = 2 ** 16;
/** Bytes of passed rows that one scan collects. */
const maxPassedBytes = 8 * 1024 * 1024;
const seriesBytes = Uint16Array.BYTES_PER_ELEMENT;

interface FoundRows {
  readonly block: number;
  readonly seen: Uint32Array;
  readonly passed: Uint32Array;
  readonly series: Uint16Array;
  readonly values: Float64Array;
}

/** Collects what a scan finds in the blocks of one source. */
export class FindingsWriter {
  #blocks: FoundRows[] = [];
  #labels: Labels[] = [];
  /** Places in `#labels` by series of the scan. */
  #places: number[] = [];
  #passed = 0;
  #isFull = false;

  /**
   * Takes which of the rows of a block that went through the stages, as words of bits, passed them; what was known of the block stays
   * known.
   */
  addRows(number: number, seen: Uint32Array, batch: Readonly<RowSelection>, known?: FoundBlock) {
    if (known?.knowsAll(seen) === true) return;
    const passed = bitsOf(batch, seen.length * 32);
    known?.addTo(seen, passed);
    const none = { series: new Uint16Array(0), values: new Float64Array(0) };
    this.#blocks.push({ block: number, seen, passed, ...none });
  }

  /** Takes what became of the rows of a block. `seriesOf` and `labels` tell the series of the scan, and their labels. */
  add(
    block: { readonly number: number; readonly rowCount: number },
    seen: Readonly<RowSelection>,
    { count, rows, series, values }: RowBatch,
    seriesOf: (id: number) => number,
    labels: readonly Labels[],
  ): void {
    this.#passed += count;
    const bytes =
      this.#passed * (seriesBytes + (values === undefined ? 0 : values.BYTES_PER_ELEMENT));
    this.#isFull ||= bytes > maxPassedBytes;
    if (this.#isFull) return;
    const places = new Uint16Array(count);
    for (let i = 0; i < count; i++) {
      const own = seriesOf(series[i]!);
      this.#places[own] ??= this.#labels.push(labels[own]!) - 1;
      places[i] = this.#places[own]!;
    }
    this.#isFull = this.#labels.length > maxSeries;
    this.#blocks.push({
      block: block.number,
      seen: bitsOf(seen, block.rowCount),
      passed: bitsOf({ rows, count }, block.rowCount),
      series: places,
      values: values?.slice(0, count) ?? new Float64Array(0),
    });
  }

  /** Undefined when it is too little, or too much, to be kept. */
  finish(): Findings | undefined {
    const blocks = this.#blocks;
    if (this.#isFull || blocks.length < minBlocks) return undefined;
    const isOne = this.#labels.length < 2;
    return {
      ...{ blocks: share(Uint32Array, [Uint32Array.from(blocks, ({ block }) => block)]) },
      wordStart: startsOf(blocks.map(({ seen }) => seen.length)),
      seen: share(
        Uint32Array,
        blocks.map(({ seen }) => seen),
      ),
      passed: share(
        Uint32Array,
        blocks.map(({ passed }) => passed),
      ),
      passedStart: startsOf(blocks.map(({ series }) => series.length)),
      series: share(Uint16Array, isOne ? [] : blocks.map(({ series }) => series)),
      values: share(
        Float64Array,
        blocks.map(({ values }) => values),
      ),
      labels: this.#labels,
    };
  }
}

type Column = Uint16Array | Uint32Array | Float64Array;

/** Puts parts of a column together in shared memory. */
function share<T extends Column>(
  type: { new (buffer: SharedArrayBuffer): T; readonly BYTES_PER_ELEMENT: number },
  parts: readonly T[],
): T {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const column = new type(new SharedArrayBuffer(length * type.BYTES_PER_ELEMENT));
  let at = 0;
  for (const part of parts) {
    column.set(part, at);
    at += part.length;
  }
  return column;
}

function startsOf(lengths: readonly number[]): Uint32Array {
  const starts = new Uint32Array(lengths.length + 1);
  lengths.forEach((length, i) => {
    starts[i + 1] = starts[i]! + length;
  });
  return share(Uint32Array, [starts]);
}

/** Rows as words of bits. */
export function bitsOf({ rows, count }: Readonly<RowSelection>, rowCount: number): Uint32Array {
  const words = new Uint32Array((rowCount + 31) >>> 5);
  for (let i = 0; i < count; i++) words[rows[i]! >> 5]! |= 1 << (rows[i]! & 31);
  return words;
}

/** Memory of findings. */
export function findingsBytes({ labels, ...columns }: Findings): number {
  const pairs = labels.reduce((sum, { names }) => sum + 1 + names.length, 0);
  return Object.values(columns).reduce((sum, { byteLength }) => sum + byteLength, pairs * 100);
}

/** What is known of one block. */
export class FoundBlock {
  readonly findings: Findings;
  readonly #at: number;

  constructor(findings: Findings, at: number) {
    this.findings = findings;
    this.#at = at;
  }

  /** The rows that pass or are not known, as words of bits. */
  get left(): Uint32Array {
    const { seen, passed } = this.findings;
    const [from, to] = this.#words;
    const left = passed.slice(from, to);
    for (let i = 0; i < left.length; i++) left[i]! |= ~seen[from + i]!;
    return left;
  }

  /** Whether all of these rows, as words of bits, are known. */
  knowsAll(rows: Uint32Array): boolean {
    const [from] = this.#words;
    return rows.every((word, i) => (word & ~this.findings.seen[from + i]!) === 0);
  }

  /** Adds the rows that are known, and those that pass, to words of bits. */
  addTo(seen: Uint32Array, passed: Uint32Array): void {
    const [from] = this.#words;
    for (let i = 0; i < seen.length; i++) {
      seen[i]! |= this.findings.seen[from + i]!;
      passed[i]! |= this.findings.passed[from + i]!;
    }
  }

  get #words(): [from: number, to: number] {
    const { wordStart } = this.findings;
    return [wordStart[this.#at]!, wordStart[this.#at + 1]!];
  }

  /** Whether all of the rows from .. to - 1 are known. */
  knows(from: number, to: number): boolean {
    const { seen } = this.findings;
    const [first] = this.#words;
    for (let word = from >> 5; word * 32 < to; word++)
      if ((seen[first + word]! | ~bitsWithin(word, from, to)) !== -1) return false;
    return true;
  }

  /** Whether all of the rows from .. to - 1 are known not to pass. */
  refuses(from: number, to: number): boolean {
    const { seen, passed } = this.findings;
    const [first] = this.#words;
    for (let word = from >> 5; word * 32 < to; word++) {
      const refused = seen[first + word]! & ~passed[first + word]!;
      if ((refused | ~bitsWithin(word, from, to)) !== -1) return false;
    }
    return true;
  }

  /** Counts those of the rows from .. to - 1 that pass, by places in `labels`. */
  count(from: number, to: number, add: (place: number, rows: number) => void): void {
    const { passed, passedStart, series } = this.findings;
    const [first] = this.#words;
    let rows = 0;
    for (let word = from >> 5; word * 32 < to; word++)
      rows += countBits(passed[first + word]! & bitsWithin(word, from, to));
    if (rows === 0) return;
    if (series.length === 0) {
      add(0, rows);
      return;
    }
    let rank =
      passedStart[this.#at]! + countBits(passed[first + (from >> 5)]! & ~(-1 << (from & 31)));
    for (let word = 0; word < from >> 5; word++) rank += countBits(passed[first + word]!);
    addUp(series, rank, rank + rows, add);
  }

  /** Those of the rows that pass, with places in `labels` as their series; undefined when some of the rows are not known. */
  batchOf(selection: Readonly<RowSelection>): RowBatch | undefined {
    const { passed, passedStart, series, values } = this.findings;
    const [from, to] = this.#words;
    const wanted = bitsOf(selection, (to - from) * 32);
    if (!this.knowsAll(wanted)) return undefined;
    let count = 0;
    wanted.forEach((word, i) => {
      count += countBits(word & passed[from + i]!);
    });
    const found = {
      count,
      rows: new Uint32Array(count),
      series: new Uint32Array(count),
      ...(values.length === 0 ? {} : { values: new Float64Array(count) }),
    };
    let place = 0;
    let rank = passedStart[this.#at]!;
    for (let i = 0; i < wanted.length; i++) {
      const own = passed[from + i]!;
      for (let left = own & wanted[i]!; left !== 0; left &= left - 1) {
        const bit = left & -left;
        const at = rank + countBits(own & (bit - 1));
        found.rows[place] = i * 32 + 31 - Math.clz32(bit);
        if (series.length > 0) found.series[place] = series[at]!;
        if (found.values !== undefined) found.values[place] = values[at]!;
        place++;
      }
      rank += countBits(own);
    }
    return found;
  }
}

/** Of the rows of a word, those from .. to - 1 as bits. */
function bitsWithin(word: number, from: number, to: number): number {
  const below = word * 32 < from ? -1 << (from & 31) : -1;
  return to - word * 32 < 32 ? below & ~(-1 << (to & 31)) : below;
}

/** By place, how often it was met so far: zeros between calls. */
const met = new Uint32Array(maxSeries);

/** Counts the places of a stretch, in order of their first row. */
function addUp(
  series: Uint16Array,
  from: number,
  to: number,
  add: (place: number, rows: number) => void,
): void {
  const places: number[] = [];
  for (let i = from; i < to; i++) {
    const place = series[i]!;
    if (met[place] === 0) places.push(place);
    met[place]! += 1;
  }
  const rows = places.map((place) => met[place]!);
  // Adding may throw.
  for (const place of places) met[place] = 0;
  places.forEach((place, i) => {
    add(place, rows[i]!);
  });
}

/** Hacker's Delight, figure 5-2. */
function countBits(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
