import type { Matcher, SourceRef } from "@skald/model";
import type { Source } from "./source.js";

/** Asks for the streams of some sources that have rows in the range [fromNs, toNs] and satisfy any of the selectors. */
export interface StreamTask {
  readonly sources: readonly SourceRef[];
  /** No selector at all means every stream. */
  readonly selectors: readonly (readonly Matcher[])[];
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** The canonical texts of the streams, each once. */
export function collectStreams(source: Source, task: StreamTask, found: Set<string>): void {
  const wanted =
    task.selectors.length === 0
      ? [source.select([])]
      : task.selectors.map((selector) => source.select(selector));
  const from = Number(task.fromNs - source.baseNs);
  const to = Number(task.toNs - source.baseNs);
  const done = new Set<number>();
  for (let block = 0; block < source.blockCount; block++) {
    const { count, stream, minTime, maxTime } = source.runs(block);
    for (let r = 0; r < count; r++) {
      const number = stream[r] as number;
      if ((maxTime[r] as number) < from || (minTime[r] as number) > to || done.has(number))
        continue;
      done.add(number);
      if (wanted.some((flags) => flags[number] === 1)) found.add(source.text(number));
    }
  }
}
