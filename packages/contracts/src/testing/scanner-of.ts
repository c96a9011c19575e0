import type { HeldKind, ScanFunctions, ScanKind, Scanner, ScanOptions, TaskOf } from "../scan.js";
import type { SourceRef } from "../source.js";

/** A scanner that calls these functions; a kind without one is a fault of the test. */
export function scannerOf<Ref = SourceRef, Kinds extends ScanKind = HeldKind>(
  functions: Partial<ScanFunctions<Ref, Kinds>>,
): Scanner<Ref, Kinds> {
  return {
    run: async <K extends Kinds>(kind: K, task: TaskOf<K, Ref>, options: ScanOptions) => {
      const scan = functions[kind];
      if (scan === undefined) throw new Error(`the test has no ${kind}`);
      return scan(task, options);
    },
  };
}
