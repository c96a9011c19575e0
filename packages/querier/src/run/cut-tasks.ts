import type { SourceRef } from "@skald/contracts";
import type { TimeRange } from "@skald/model";
import type { PlannedSource } from "../find/order-sources.js";

/** A piece of work for one thread: some small sources, or a part of a large one. All are of one side. */
export interface QueryTask {
  readonly side: PlannedSource["side"];
  readonly sources: readonly TaskSource[];
}

export interface TaskSource {
  readonly source: PlannedSource;
  readonly part?: { readonly index: number; readonly count: number };
}

/** Raw bytes of a task: enough that sending it costs nothing, little enough that threads share the work evenly. */
const maxBytes = 16 * 1024 * 1024;
/** Sources below this are put together whatever the threads have to do. */
const minBytes = 64 * 1024;
const tasksPerThread = 4;
const maxSources = 64;
/** Raw bytes per stored byte of a segment, roughly: repetitive lines take much less. */
const compression = 5;

export interface CutOptions {
  /** Off: a source is in one task only. */
  readonly split: boolean;
  /** Threads that all shall have something to do. */
  readonly threads: number;
}

/** Cuts sources, in their order, into tasks. */
export function cutTasks(
  sources: readonly PlannedSource[],
  { split, threads }: CutOptions,
): QueryTask[] {
  const total = sources.reduce((sum, { ref }) => sum + rawBytes(ref), 0);
  const share = Math.min(maxBytes, Math.max(minBytes, total / (threads * tasksPerThread)));
  const tasks: QueryTask[] = [];
  let batch: TaskSource[] = [];
  let bytes = 0;
  const end = () => {
    const [first] = batch;
    if (first !== undefined) tasks.push({ side: first.source.side, sources: batch });
    batch = [];
    bytes = 0;
  };
  for (const source of sources) {
    const size = rawBytes(source.ref);
    const isFull = batch.length === maxSources || bytes + size > share;
    if (isFull || batch[0]?.source.side !== source.side) end();
    const count = split ? Math.ceil(size / maxBytes) : 1;
    if (count > 1) {
      for (let index = 0; index < count; index++)
        tasks.push({ side: source.side, sources: [{ source, part: { index, count } }] });
      continue;
    }
    batch.push({ source });
    bytes += size;
  }
  end();
  return tasks;
}

function rawBytes({ kind, sizeBytes }: SourceRef): number {
  return kind === "segment" ? sizeBytes * compression : sizeBytes;
}

/** Raw bytes of the part of sources that lies in a range, roughly: a source is taken to be even over its time. */
export function estimateBytes(sources: readonly PlannedSource[], range: TimeRange): number {
  return sources.reduce((sum, { ref }) => sum + rawBytes(ref) * shareWithin(ref, range), 0);
}

function shareWithin({ minNs, maxNs }: SourceRef, { fromNs, toNs }: TimeRange): number {
  const from = minNs > fromNs ? minNs : fromNs;
  const to = maxNs < toNs ? maxNs : toNs - 1n;
  return Math.max(0, Number(to - from + 1n) / Number(maxNs - minNs + 1n));
}
