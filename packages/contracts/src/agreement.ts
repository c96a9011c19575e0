import type { Matcher, TimeRange } from "@skald/model";
import type { TaskSource } from "./source.js";

/**
 * Rows are compared by stream and minute of event time. A stream is named by 53 bits of its hash, a minute is counted from
 * the epoch, modulo 2^32.
 */
export interface StreamMinutes {
  /** Each once. */
  readonly streams: Float64Array;
  /** How many of the minutes are those of a stream. */
  readonly counts: Uint32Array;
  readonly minutes: Uint32Array;
}

/** Asks what some sources of one place hold together, so that it can be compared with what others hold. */
export interface DigestTask<Ref> extends TimeRange {
  readonly sources: readonly TaskSource<Ref>[];
  readonly matchers: readonly Matcher[];
  /** Minutes that one digest covers, told by the first of them, a multiple of this. */
  readonly minutesEach: number;
}

/**
 * Digests of the rows that sources have of the streams of a task, one for each minute (or span of minutes) that its range touches.
 * Equal digests mean equal rows. In a minute that the range cuts, rows outside the range may be missing.
 */
export interface MinuteDigests extends StreamMinutes {
  readonly rows: Uint32Array;
  /** Wrapping sums of the halves of row hashes: low, then high. */
  readonly sums: Uint32Array;
}

/** Asks for the hash of each row in some minutes of some streams. */
export interface RowHashTask<Ref> extends TimeRange {
  readonly sources: readonly TaskSource<Ref>[];
  readonly wanted: StreamMinutes;
}

/** Rows, each with its minute, by the number of that in the task, and its place. */
export interface PlacedHashes {
  readonly minute: Uint32Array;
  /** Number of the source in the task. */
  readonly source: Uint32Array;
  readonly block: Uint32Array;
  readonly row: Uint32Array;
  /** Two numbers a row: low, then high. */
  readonly hashes: Uint32Array;
}

/** Rows to leave out because other sources have them too: all of some minutes. */
export interface SkippedMinutes {
  /** Stretches of minutes in which no row of any stream counts: first, end, first, end, ... */
  readonly all: Uint32Array;
  /** Further minutes in which those of one stream do not. */
  readonly some: StreamMinutes;
}
