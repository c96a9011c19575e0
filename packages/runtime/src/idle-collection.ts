import { performance } from "node:perf_hooks";
import v8 from "node:v8";
import vm from "node:vm";

/** The heap of this thread, and how busy the thread is. */
export interface WatchedHeap {
  /** Bytes of all objects, and of all buffers, garbage included. */
  readonly usedBytes: () => { readonly objects: number; readonly buffers: number };
  /** The part of the time since the last call in which the thread was busy, from 0 to 1. */
  readonly busyShare: () => number;
  readonly collect: () => void;
}

const periodMs = 10_000;
/** A thread that is busier collects by itself. */
const maxBusyShare = 1 / 4;
/** A collection stops the thread for some tens of milliseconds, so the garbage must be worth it. */
const minGarbageBytes = 64 * 1024 * 1024;

/**
 * Frees the garbage of this thread when a burst of work is over: V8 collects only while something is allocated, so the heap would
 * keep what large requests left for as long as there are only small ones. It collects when half as much was added as there are objects
 * to look at.
 */
export class IdleCollection {
  readonly #heap: WatchedHeap;
  /** What the last collection left, or what V8 has left since. */
  #keptBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(heap: WatchedHeap = ownHeap()) {
    this.#heap = heap;
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Collects if that is due; called every ten seconds. */
  look(): void {
    const { busyShare, usedBytes, collect } = this.#heap;
    const isBusy = busyShare() > maxBusyShare;
    const { objects, buffers } = usedBytes();
    const bytes = objects + buffers;
    this.#keptBytes = Math.min(this.#keptBytes, bytes);
    if (isBusy || bytes - this.#keptBytes < Math.max(objects / 2, minGarbageBytes)) return;
    collect();
    const left = usedBytes();
    this.#keptBytes = left.objects + left.buffers;
  }
}

/** The heap of the thread that calls. */
export function ownHeap(): WatchedHeap {
  let last = performance.eventLoopUtilization();
  return {
    usedBytes: () => {
      const { used_heap_size, external_memory } = v8.getHeapStatistics();
      return { objects: used_heap_size, buffers: external_memory };
    },
    busyShare: () => {
      const before = last;
      last = performance.eventLoopUtilization();
      return performance.eventLoopUtilization(last, before).utilization;
    },
    collect: collectGarbage,
  };
}

let gc: (() => void) | undefined;

/** Collects all garbage of this thread. Node has a function for that in contexts that are made while the flag is set. */
export function collectGarbage(): void {
  if (gc === undefined) {
    v8.setFlagsFromString("--expose-gc");
    gc = vm.runInNewContext("gc") as () => void;
    // Compiled code that is cached is for the flags that it was made with.
    v8.setFlagsFromString("--no-expose-gc");
  }
  gc();
}
