import type { LabelTask, StreamColumns, StreamTask } from "@skald/contracts";
import { codeOf, type LabelTable, type LocalRef } from "@skald/storage";
import type { OpenSource, Source } from "../source/source.js";
import { flagsOf } from "../source/view.js";
import { allHashes, HashNumbers, type HashPart, StreamCollector } from "./collect-streams.js";

/** Blocks between two checks for cancellation. */
const blocksPerCheck = 64;

/** Finds the streams that a task asks for, each once. `check` throws when the request was cancelled. */
export function scanStreams(
  task: StreamTask<LocalRef>,
  open: OpenSource,
  check: () => void,
): StreamColumns {
  const found = new StreamCollector(task.part);
  for (const { ref } of task.sources) {
    check();
    const source = open(ref);
    found.addTable(source.streams, streamsOf(ref, source, task, check) ?? allOf(source));
  }
  return found.finish();
}

/** Finds the label names of those streams, or the values of one name; sorted. */
export function scanLabels(
  task: LabelTask<LocalRef>,
  open: OpenSource,
  check: () => void,
): string[] {
  const found = new LabelCollector(task.label, task.part);
  for (const { ref } of task.sources) {
    check();
    const source = open(ref);
    found.addTable(source.streams, streamsOf(ref, source, task, check));
  }
  return found.finish();
}

/** The streams of a source that satisfy any of the selectors and have rows in the range; undefined for all streams. */
function streamsOf(
  ref: LocalRef,
  source: Source,
  { selectors, fromNs, toNs }: StreamTask<LocalRef>,
  check: () => void,
): Uint32Array | undefined {
  const isSegment = ref.kind === "segment";
  const wanted =
    isSegment && selectors.length === 0 ? undefined : matching(source, selectors, isSegment);
  // Every stream of a segment has rows: the headers matter only where the range cuts through it.
  if (isSegment && ref.minNs >= fromNs && ref.maxNs < toNs) return wanted;
  const { count } = source.streams;
  const flags = wanted === undefined ? new Uint8Array(count).fill(1) : flagsOf(wanted, count);
  const from = Number(fromNs - source.baseNs);
  const to = Number(toNs - source.baseNs);
  const found = new Uint32Array(wanted?.length ?? count);
  let length = 0;
  for (let block = 0; block < source.blockCount; block++) {
    if (block % blocksPerCheck === 0) check();
    const { count: runs, stream, minTime, maxTime } = source.runs(block);
    for (let r = 0; r < runs; r++) {
      const number = stream[r]!;
      if (flags[number] !== 1) continue;
      if (maxTime[r]! < from || minTime[r]! >= to) continue;
      flags[number] = 0;
      found[length++] = number;
    }
  }
  // A head has only the streams that were selected.
  if (!isSegment && length === wanted?.length && allOf(source).length === length) return undefined;
  return found.subarray(0, length);
}

/** The streams that satisfy any of the selectors, each once; all streams without a selector. */
function matching(
  { streams }: Source,
  selectors: StreamTask["selectors"],
  isSegment: boolean,
): Uint32Array | undefined {
  const [first = [], ...others] = selectors;
  let matched = streams.match(first);
  for (const selector of others) {
    const both = new Set([...matched, ...streams.match(selector)]);
    matched = Uint32Array.from(both).sort();
  }
  return isSegment && matched.length === streams.count ? undefined : matched;
}

function allOf({ streams }: Source): Uint32Array {
  return streams.match([]);
}

/** Collects label names, or the values of one name, from several sources, each once. */
class LabelCollector {
  readonly #name: string | undefined;
  readonly #known = new HashNumbers();
  readonly #texts: string[] = [];
  readonly #part: HashPart;

  /** Collects the values of a name, or all names. */
  constructor(name: string | undefined, part: HashPart = allHashes) {
    this.#name = name;
    this.#part = part;
  }

  /** Adds the names or values of some streams of a table, or of all streams. */
  addTable(table: LabelTable, streams: Uint32Array | undefined): void {
    if (this.#name !== undefined) this.#addValues(table, this.#name, streams);
    else this.#addNames(table, streams);
  }

  /** Sorted. */
  finish(): string[] {
    return this.#texts.sort();
  }

  #addNames(table: LabelTable, streams: Uint32Array | undefined): void {
    for (const name of table.names) {
      if (this.#texts.includes(name)) continue;
      if (streams === undefined || hasName(table, name, streams)) this.#texts.push(name);
    }
  }

  #addValues(table: LabelTable, name: string, streams: Uint32Array | undefined): void {
    const column = table.column(name);
    if (column === undefined) return;
    const { hashes, valueCount } = column;
    const { index, count } = this.#part;
    const add = (code: number) => {
      if (count > 1 && hashes[2 * code + 1]! % count !== index) return;
      const { size } = this.#known;
      if (this.#known.numberOf(hashes[2 * code]!, hashes[2 * code + 1]!) < size) return;
      this.#texts.push(column.value(code));
    };
    if (streams === undefined) {
      if (this.#known.size === 0) this.#known.reserve(valueCount / count);
      for (let code = 0; code < valueCount; code++) add(code);
      return;
    }
    const seen = new Uint8Array(valueCount + 1).fill(1, 0, 1);
    for (const stream of streams) {
      const code = codeOf(column, stream);
      if (seen[code] === 1) continue;
      seen[code] = 1;
      add(code - 1);
    }
  }
}

function hasName(table: LabelTable, name: string, streams: Uint32Array): boolean {
  const column = table.column(name);
  return column !== undefined && streams.some((stream) => codeOf(column, stream) > 0);
}
