import { performance } from "node:perf_hooks";
import type { CompactionThreads } from "@skald/compactor";
import { turnCall } from "@skald/compactor/jobs";
import { type HostFunction, type Logger, sleep, WorkerPool } from "@skald/runtime";
import { decodeDayIndex, type IndexImage } from "@skald/storage";
import { threadScripts } from "../thread-scripts.js";

export interface CompactionThreadsOptions {
  /** Merges at a time. */
  readonly size: number;
  /** Whether queries run or wait. */
  readonly isBusy: () => boolean;
  readonly log: Logger;
}

const maxQueued = 10_000;
/** What a thread may keep; it ends soon after its last job, as there are few. */
const maxKeptMib = 16;
/** A merge waits no longer than this for others, so that it ends some day under any load. */
const maxWaitMs = 1000;
const waitMs = 20;
/** Share of its time that the main thread works: above it pushes need the processors. */
const maxMainShare = 0.5;
/** A day index that is smaller is decoded where it is asked for. */
const maxDecodedHere = 64 * 1024;

/** Threads of their own for merges: one that waits for queries and pushes holds up nobody. */
export function compactionThreads({ size, isBusy, log }: CompactionThreadsOptions): {
  readonly threads: CompactionThreads;
  readonly close: () => Promise<void>;
} {
  const pool = new WorkerPool({
    url: threadScripts.jobs,
    ...{ size, maxQueued, maxKeptMib, lazy: true },
    onThreadLost: (error) => log.error("a thread of the compactor died", { error }),
  });
  const takeTurn = turns(isBusy);
  const host = { [turnCall]: takeTurn };
  const run = <T>(name: string, payload: unknown, signal?: AbortSignal) =>
    pool.run<T>(name, payload, {
      ...{ lane: "background", host },
      ...(signal === undefined ? {} : { signal }),
    });
  return {
    threads: {
      merge: (job, { signal }) => run("merge_segments", job, signal),
      edit: (change, { signal }) => run("edit_day", change, signal),
      open: (name, bytes) => run("open_day", { name, bytes }),
    },
    close: () => pool.close(),
  };
}

/** Answers when nobody else needs the processors, or after a while. */
function turns(isBusy: () => boolean): HostFunction {
  let last = performance.eventLoopUtilization();
  const isMainBusy = (): boolean => {
    const { utilization } = performance.eventLoopUtilization(last);
    last = performance.eventLoopUtilization();
    return utilization > maxMainShare;
  };
  return async (_, { signal }) => {
    for (let waited = 0; waited < maxWaitMs && (isBusy() || isMainBusy()); waited += waitMs) {
      await sleep(waitMs, signal);
    }
    return { value: undefined };
  };
}

/** Decodes a day index for the catalog, on a thread when it is large. */
export async function decodeIndex(
  pool: WorkerPool,
  name: string,
  bytes: Uint8Array,
): Promise<IndexImage> {
  if (bytes.byteLength <= maxDecodedHere) return decodeDayIndex(name, bytes);
  return pool.run<IndexImage>("open_day", { name, bytes }, { lane: "query" });
}
