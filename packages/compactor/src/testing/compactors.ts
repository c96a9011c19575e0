import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@skald/runtime/log";
import {
  decodeDayIndex,
  editDay,
  mergeSegments,
  type ObjectStore,
  openSegmentFile,
} from "@skald/storage";
import {
  type CompactionThreads,
  DayCompaction,
  type DayCompactionDeps,
} from "../compaction/compact-day.js";
import { WorkFiles } from "../compaction/segment-merge.js";

/** The work of a compactor, done at once. */
export const threadsHere: CompactionThreads = {
  merge: async ({ inputs, ...job }) => {
    const opened = inputs.map(({ ref }) => openSegmentFile(ref));
    try {
      const segments = opened.map(({ segment }, i) => ({ segment, dropped: inputs[i]?.dropped }));
      const steps = mergeSegments({ ...job, inputs: segments });
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      return step.value;
    } finally {
      for (const { close } of opened) close();
    }
  },
  edit: async (change) => editDay(change),
  open: async (name, bytes) => decodeDayIndex(name, bytes),
};

/** Grace times and sizes of tests: small segments are merged in pairs. */
export const testBounds = {
  ...{ targetBytes: 1_000_000, minInputs: 2, maxInputs: 4 },
  ...{ graceMs: 1000, rememberMs: 5000, settleMs: 1e15, deletesAtOnce: 3, mergesAtOnce: 2 },
};

/** Makes compactors over stores, and removes their files. */
export class Compactors {
  readonly #directory = mkdtempSync(join(tmpdir(), "skald-compactor-"));
  #made = 0;

  async make(store: ObjectStore, deps: Partial<DayCompactionDeps> = {}): Promise<DayCompaction> {
    const work = new WorkFiles(join(this.#directory, String(this.#made++)));
    await work.open();
    return new DayCompaction({
      ...{ store, work, threads: threadsHere, bounds: testBounds },
      locate: (key) => ({ kind: "object", key }),
      clock: { nowMs: () => Date.now() },
      log: silentLogger(),
      askedOf: async () => ({ texts: [], fields: new Map() }),
      fieldShare: 0,
      onMerged: () => {},
      onDamaged: () => {},
      onDeleted: () => {},
      ...deps,
    });
  }

  close(): void {
    rmSync(this.#directory, { recursive: true });
  }
}
