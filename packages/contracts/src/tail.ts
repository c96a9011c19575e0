import type { LogResult, Stage } from "@skald/logql";
import type { Labels, Matcher } from "@skald/model";
import type { CallOptions } from "./call.js";

/** Follows what comes in. */
export interface Tailer {
  /** Rows that come in from now on, until the signal. Ends by itself when the ingester stops; throws what a stage refuses. */
  tail(request: TailRequest, options: CallOptions): AsyncIterable<TailRows>;
}

/** Asks for the rows of a log query that come in from now on. */
export interface TailRequest {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  readonly stages: readonly Stage[];
}

/**
 * Rows of a tail, oldest first within one item. The first item has none and comes at once: every row published after it
 * follows, one published before it never does; of several ingesters as one, it comes when enough of them said theirs, and
 * rows published meanwhile may follow.
 */
export interface TailRows {
  readonly rows?: LogResult;
  /** Some of the rows that the asker was too slow for, or the tail was. */
  readonly dropped: readonly DroppedRow[];
  /** How many rows were left out besides those; absent where it is not known, or none. */
  readonly unnamed?: number;
}

/** A row that a tail has left out. */
export interface DroppedRow {
  readonly timestampNs: bigint;
  readonly labels: Labels;
}
