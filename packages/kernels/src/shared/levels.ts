/**
 * Codes of levels: the indexes of `levelNames` in the model package, repeated here because kernels import nothing.
 * 0 means that a text is no level.
 */
export const levelCode = {
  none: 0,
  unknown: 1,
  trace: 2,
  debug: 3,
  info: 4,
  warn: 5,
  error: 6,
  critical: 7,
  fatal: 8,
} as const;

/** Every spelling that counts as a level, in lower case. */
export const levelSpellings: ReadonlyMap<string, number> = new Map([
  ["trace", levelCode.trace],
  ["trc", levelCode.trace],
  ["debug", levelCode.debug],
  ["dbg", levelCode.debug],
  ["info", levelCode.info],
  ["inf", levelCode.info],
  ["information", levelCode.info],
  ["warn", levelCode.warn],
  ["wrn", levelCode.warn],
  ["warning", levelCode.warn],
  ["error", levelCode.error],
  ["err", levelCode.error],
  ["critical", levelCode.critical],
  ["fatal", levelCode.fatal],
]);

/** The words that are searched in the text of a line. */
export const levelKeywords: readonly string[] = [
  "trace",
  "debug",
  "fatal",
  "critical",
  "error",
  "err",
  "warning",
  "warn",
  "info",
];

const longestSpelling = 11;

/** Code of a level as a label or metadata value spells it, in any case; 0 for a text that is no level. */
export function normaliseLevel(text: string): number {
  if (text.length > longestSpelling) return levelCode.none;
  return levelSpellings.get(text.toLowerCase()) ?? levelCode.none;
}

/** How the level of a line is looked for. */
export interface LevelOptions {
  /** Names of fields that carry a level, best first; JSON compares case, logfmt does not. */
  readonly fields: readonly string[];
  /** How deep objects are searched: 1 is the outermost only; 0 or less means any depth. */
  readonly jsonMaxDepth: number;
}
