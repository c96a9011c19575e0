import type { CallOptions } from "../call.js";
import type { Querier, QueryFunctions, QueryKind, RequestOf } from "../querier.js";
import type {
  HeldKind,
  ScanFunctions,
  ScanKind,
  Scanner,
  ScanOptions,
  SourceRef,
  TaskOf,
} from "../scan.js";

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

/** A querier that calls these functions; a kind without one is a fault of the test. */
export function querierOf(functions: Partial<QueryFunctions>): Querier {
  return {
    run: async <K extends QueryKind>(kind: K, request: RequestOf<K>, options: CallOptions) => {
      const answer: QueryFunctions[K] | undefined = functions[kind];
      if (answer === undefined) throw new Error(`the test has no ${kind}`);
      return answer(request, options);
    },
  };
}
