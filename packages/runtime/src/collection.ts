import { performance } from "node:perf_hooks";
import v8 from "node:v8";
import vm from "node:vm";

/** The heap of this thread, and how busy the process is. */
export interface WatchedHeap {
  /** Bytes of all objects, and of all buffers, garbage included. */
  readonly usedBytes: () => { readonly objects: number; readonly buffers: number };
  /** CPU time of all threads since the last call, as a part of the time that passed. */
  readonly busyCores: () => number;
  readonly collect: () => void;
  /** Whether V8 shall give memory back in all threads, which makes their collections dearer. */
  readonly saveMemory: (isOn: boolean) => void;
}

const periodMs = 1000;
/** A process that is busier collects by itself: in the last second, or on average. */
const maxBusyCores = 1 / 2;
/** Seconds that the average goes back, as one of a decay. */
const averageSeconds = 10;
/** V8 looks every eight seconds whether there is memory to give back, and collects in steps, twice. */
const savingSeconds = 30;
/** A collection stops the thread for some tens of milliseconds, so the garbage must be worth it. */
const minGarbageBytes = 64 * 1024 * 1024;

/**
 * Gives memory back when a burst of work is over. V8 collects only while something is allocated, so the heap would keep what
 * large requests left as long as only small ones follow. This class collects once the garbage may be half as large as the heap.
 * V8 also keeps the pages that it freed. This class tells it to return them.
 */
export class IdleCollection {
  readonly #heap: WatchedHeap;
  /** What the last collection left, or what V8 has left since. */
  #keptBytes = 0;
  #averageCores = 0;
  /** Seconds since the process was busy on average. */
  #calmSeconds = savingSeconds;
  #timer: NodeJS.Timeout | undefined;

  constructor(heap: WatchedHeap = ownHeap()) {
    this.#heap = heap;
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#heap.saveMemory(false);
  }

  /** Collects if that is due; called every second. */
  look(): void {
    const { busyCores, saveMemory } = this.#heap;
    const cores = busyCores();
    this.#averageCores += (cores - this.#averageCores) / averageSeconds;
    this.#calmSeconds = this.#averageCores > maxBusyCores ? 0 : this.#calmSeconds + 1;
    const isCalm = this.#calmSeconds > 0;
    saveMemory(isCalm && this.#calmSeconds <= savingSeconds);
    // Who has just begun to work would wait for the collection.
    if (isCalm && cores <= maxBusyCores) this.#collect();
  }

  #collect(): void {
    const { usedBytes, collect } = this.#heap;
    const { objects, buffers } = usedBytes();
    const bytes = objects + buffers;
    this.#keptBytes = Math.min(this.#keptBytes, bytes);
    const minBytes = Math.max(objects / 2, minGarbageBytes);
    if (bytes - this.#keptBytes < minBytes) return;
    collect();
    const left = usedBytes();
    this.#keptBytes = left.objects + left.buffers;
  }
}

/** V8 complains about a flag that it does not know: the one of Node 20 and 22. */
export function knowsSaving(nodeVersion: string): boolean {
  return Number.parseInt(nodeVersion, 10) >= 24;
}

/** The heap of the thread that calls. */
export function ownHeap(): WatchedHeap {
  let lastMs = performance.now();
  let lastCpu = process.cpuUsage();
  let isSaving = false;
  return {
    usedBytes: () => {
      const { used_heap_size, external_memory } = v8.getHeapStatistics();
      return { objects: used_heap_size, buffers: external_memory };
    },
    busyCores: () => {
      const { user, system } = process.cpuUsage(lastCpu);
      const tookMs = performance.now() - lastMs;
      lastCpu = process.cpuUsage();
      lastMs = performance.now();
      return (user + system) / 1000 / tookMs;
    },
    collect: collectGarbage,
    saveMemory: (isOn) => {
      if (isOn === isSaving || !knowsSaving(process.versions.node)) return;
      isSaving = isOn;
      v8.setFlagsFromString(`--${isOn ? "" : "no-"}memory-saver-mode`);
    },
  };
}

/** A thread that has had no job for this time gives memory back. */
const restMs = 1000;
/** It keeps less garbage than this, because a collection takes 20 to 60 ms. */
const minRestBytes = 8 * 1024 * 1024;
/** A thread whose jobs left more than this collects at once. */
const maxGarbageBytes = 64 * 1024 * 1024;

/**
 * Gives the memory back that the jobs of this thread left. V8 collects only while something is allocated, and keeps the pages that it
 * freed, so an idle thread would hold what its largest job needed.
 */
export class JobGarbage {
  /** What the last collection left, or what V8 has left since. */
  #keptBytes = heldBytes();
  #rest: NodeJS.Timeout | undefined;

  onJob(): void {
    clearTimeout(this.#rest);
  }

  /** The thread has no job any more. */
  onIdle(): void {
    const addedBytes = this.#addedBytes();
    // In this turn of the event loop some of it is still in use.
    if (addedBytes > maxGarbageBytes) setImmediate(() => this.#collect());
    else if (addedBytes > minRestBytes)
      this.#rest = setTimeout(() => this.#collect(), restMs).unref();
  }

  #addedBytes(): number {
    const bytes = heldBytes();
    this.#keptBytes = Math.min(this.#keptBytes, bytes);
    return bytes - this.#keptBytes;
  }

  #collect(): void {
    garbageCollector()({ type: "major", flavor: "last-resort" });
    this.#keptBytes = heldBytes();
  }
}

/** Memory that this thread's heap has, garbage and free pages included. */
function heldBytes(): number {
  const { total_physical_size, external_memory } = v8.getHeapStatistics();
  return total_physical_size + external_memory;
}

/** Collects all garbage of this thread. */
export function collectGarbage(): void {
  garbageCollector()();
}

type Collector = (options?: { readonly type: "major"; readonly flavor: "last-resort" }) => void;
let gc: Collector | undefined;

/**
 * The function of V8 that collects. With the flavor "last-resort" it also gives free pages back to the system, and takes up to twice
 * as long. Node has it in contexts that are made while the flag is set.
 */
function garbageCollector(): Collector {
  if (gc === undefined) {
    v8.setFlagsFromString("--expose-gc");
    gc = vm.runInNewContext("gc") as Collector;
    // Compiled code that is cached is for the flags that it was made with.
    v8.setFlagsFromString("--no-expose-gc");
  }
  return gc;
}
