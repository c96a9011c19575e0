import type { Matcher, TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";

/** Knows the patterns of the lines that came in lately. */
export interface PatternIngester {
  /** Patterns of the streams that satisfy the matchers, the most frequent first. */
  patterns(request: PatternsRequest, options: CallOptions): Promise<readonly Pattern[]>;
}

export interface PatternsRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** Samples are at multiples of it, seconds. */
  readonly stepSeconds: number;
}

/** A pattern of lines, in the syntax of the pattern filter. */
export interface Pattern {
  readonly pattern: string;
  readonly level: string;
  /** Part of all lines in the range that were looked at. */
  readonly share: number;
  /** Start of a step in seconds since the epoch, ascending, and the lines in it. */
  readonly samples: readonly (readonly [number, number])[];
}
