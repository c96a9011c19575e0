import type { LabelTask, StreamColumns, StreamTask } from "@skald/contracts";
import type { LocalRef } from "@skald/storage";
import type { OpenSource, Source } from "../source/source.js";
import { flagsOf } from "../source/view.js";
import { LabelCollector } from "./collect-labels.js";
import { StreamCollector } from "./collect-streams.js";

/** Blocks between two looks at the cancellation. */
const blocksPerCheck = 64;

/** The streams that a task asks for, each once. `check` throws when the request was cancelled. */
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

/** Names of the labels of those streams, or the values of one name; sorted. */
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

/** Streams of a source that satisfy any of the selectors and have rows in the range; undefined when that is all. */
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
      const number = stream[r] as number;
      if (flags[number] !== 1) continue;
      if ((maxTime[r] as number) < from || (minTime[r] as number) >= to) continue;
      flags[number] = 0;
      found[length++] = number;
    }
  }
  // A head has no streams but those that were selected.
  if (!isSegment && length === wanted?.length && isAll(source, wanted)) return undefined;
  return found.subarray(0, length);
}

/** The streams that satisfy any of the selectors, each once; without a selector all. */
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

function isAll({ streams }: Source, some: Uint32Array): boolean {
  return streams.match([]).length === some.length;
}

function allOf({ streams }: Source): Uint32Array {
  return streams.match([]);
}
