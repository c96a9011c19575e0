export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Whether the text names a level. */
export function isLogLevel(text: string): text is LogLevel {
  return (logLevels as readonly string[]).includes(text);
}
