import type { StreamTask } from "@skald/contracts";
import type { LocalRef } from "@skald/storage";
import type { Source } from "./source.js";

/** Blocks between two looks at the cancellation. */
const blocksPerCheck = 64;

/**
 * Adds the canonical texts of the streams of one of the sources. `check` throws when the request was cancelled.
 */
export function collectStreams(
  ref: LocalRef,
  source: Source,
  task: StreamTask<LocalRef>,
  found: Set<string>,
  check: () => void,
): void {
  check();
  const { selectors, fromNs, toNs } = task;
  const wanted = unite((selectors.length === 0 ? [[]] : selectors).map((s) => source.select(s)));
  // Every stream of a segment has rows: the headers matter only where the range cuts through it.
  if (ref.kind === "segment" && ref.minNs >= fromNs && ref.maxNs < toNs) {
    wanted.forEach((flag, stream) => {
      if (flag === 1) found.add(source.text(stream));
    });
    return;
  }
  const from = Number(fromNs - source.baseNs);
  const to = Number(toNs - source.baseNs);
  for (let block = 0; block < source.blockCount; block++) {
    if (block % blocksPerCheck === 0) check();
    const { count, stream, minTime, maxTime } = source.runs(block);
    for (let r = 0; r < count; r++) {
      const number = stream[r] as number;
      if ((maxTime[r] as number) < from || (minTime[r] as number) >= to) continue;
      if (wanted[number] !== 1) continue;
      wanted[number] = 0;
      found.add(source.text(number));
    }
  }
}

/** The streams that have any of the flags. */
function unite(flags: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array(0), ...others] = flags;
  for (const other of others) {
    other.forEach((flag, stream) => {
      if (flag === 1) first[stream] = 1;
    });
  }
  return first;
}
