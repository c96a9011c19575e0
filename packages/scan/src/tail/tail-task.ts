import type { DroppedRow } from "@skald/contracts";
import type { LogResult, Stage } from "@skald/logql";
import type { ErrorCode } from "@skald/model";
import type { HeadBlockRef } from "@skald/storage";

/** New rows of one tenant and the tails that they are for: work for one thread. */
export interface TailTask {
  readonly blocks: readonly TailStretch[];
  /** Streams of the rows, as the runs of the blocks number them, ascending. */
  readonly streams: Uint32Array;
  /** Their label texts; empty for those that no tail wants. */
  readonly texts: readonly string[];
  readonly tails: readonly TailPart[];
  readonly bounds: TailBounds;
}

/** The rows `rowFrom .. rowTo - 1` of a block. */
export interface TailStretch {
  readonly ref: HeadBlockRef;
  readonly rowFrom: number;
  readonly rowTo: number;
}

/** One tail, and what of a task it wants. */
export interface TailPart {
  readonly stages: readonly Stage[];
  /** 1 for each of the streams that its matchers take. */
  readonly wanted: Uint8Array;
}

/** What one tail may take of one task; rows beyond are dropped. */
export interface TailBounds {
  readonly maxRows: number;
  /** Of lines. */
  readonly maxBytes: number;
  /** Dropped rows that are told of. */
  readonly maxDropped: number;
}

/** What a task has for one tail. */
export interface TailFound {
  readonly rows?: LogResult;
  readonly dropped: readonly DroppedRow[];
  /** Why the tail cannot go on. */
  readonly error?: { readonly code: ErrorCode; readonly message: string };
}
