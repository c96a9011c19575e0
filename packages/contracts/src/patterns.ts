import type { Matcher, TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";

/** Knows the patterns of the lines that came in lately. */
export interface PatternIngester {
  /** Learns from lines that came in. Resolves when they were looked at. */
  learn(lines: SampledLines, options: CallOptions): Promise<void>;
  /** Patterns of the streams that satisfy the matchers, the most frequent first. */
  patterns(request: PatternsRequest, options: CallOptions): Promise<FoundPatterns>;
}

/** Some of the lines that came in for a tenant, in columns. */
export interface SampledLines {
  readonly tenant: string;
  /** How many lines each stands for. */
  readonly weight: number;
  /** Canonical label texts. */
  readonly streams: readonly string[];
  /** Names of levels. */
  readonly levels: readonly string[];
  /** Of each line its place in `streams`. */
  readonly streamOf: Uint32Array;
  /** Of each line its place in `levels`. */
  readonly levelOf: Uint32Array;
  /** Of each line its time, whole seconds since the epoch. */
  readonly seconds: Float64Array;
  /** Of each line where it ends in `bytes`, and the next begins. */
  readonly ends: Uint32Array;
  readonly bytes: Uint8Array;
}

export interface PatternsRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  /** Samples are at multiples of it, seconds. */
  readonly stepSeconds: number;
}

export interface FoundPatterns {
  readonly patterns: readonly Pattern[];
  /** Lines of the streams in the range, also those of patterns that are left out. */
  readonly lines: number;
}

/** A pattern of lines, in the syntax of the pattern filter. */
export interface Pattern {
  readonly pattern: string;
  readonly level: string;
  /** Start of a step in seconds since the epoch, ascending, and the lines in it. */
  readonly samples: readonly (readonly [number, number])[];
}
