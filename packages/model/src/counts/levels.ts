/**
 * The log levels that discovery writes into the structured metadata `detected_level`.
 * In memory a level is its index here; 0 means that none was discovered.
 */
export const levelNames = [
  "",
  "unknown",
  "trace",
  "debug",
  "info",
  "warn",
  "error",
  "critical",
  "fatal",
] as const;

/** Level code of a row whose `detected_level` is not in the table and stands among its metadata. */
export const levelInMetadata = 255;

export const detectedLevelName = "detected_level";

/** The rows of a run by their `detected_level`. */
export interface LevelCounts {
  /** The empty text stands for rows without one. */
  readonly levels: readonly string[];
  readonly rows: readonly number[];
  /** Bytes of the lines. */
  readonly lineBytes: readonly number[];
}
