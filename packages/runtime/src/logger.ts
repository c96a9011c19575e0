import { errorCodeOf } from "@skald/model";

/**
 * Writes facts as lines: `log.info("flushed chunk", { tenant, entries, bytes })`. A logger and all its children share one
 * level, which can change while the process runs. A line that is written for a request names its trace, `traceID`.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to each line. */
  child(fields: LogFields): Logger;
  /** Whether a line of this level would be written: ask before building costly fields. */
  isEnabled(level: LogLevel): boolean;
  level(): LogLevel;
  /** Accepts the four names of levels; throws `invalid_argument` with the text of `POST /log_level` otherwise. */
  setLevel(level: string): void;
  /** Calls back with the level of each line that is written from now on, by its children too. */
  onLine(count: (level: LogLevel) => void): void;
}

/** An Error in the field `error` becomes its message, code and causes; its stack is logged only if it is a bug. */
export type LogFields = Readonly<Record<string, unknown>>;

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Whether the text names a level. */
export function isLogLevel(text: string): text is LogLevel {
  return (logLevels as readonly string[]).includes(text);
}

/** `read chunk x: connection refused`: the message and those of its causes, up to eight deep. */
export function messageWithCauses(error: unknown): string {
  const messages: string[] = [];
  let current = error;
  for (let depth = 0; depth < 8 && current !== undefined && current !== null; depth++) {
    messages.push(current instanceof Error ? current.message : String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return messages.join(": ");
}

/** Files beyond this number are not logged. */
const maxLoggedFiles = 10_000;

/** Logs each file that a newer version of the program wrote, once. */
export class NewerFiles {
  readonly #log: Pick<Logger, "error">;
  readonly #logged = new Set<string>();

  constructor(log: Pick<Logger, "error">) {
    this.#log = log;
  }

  /** Returns false for an error that is not about such a file: the caller logs that. */
  tell(error: unknown): boolean {
    if (errorCodeOf(error) !== "newer_version") return false;
    const { message } = error as Error;
    if (this.#logged.has(message) || this.#logged.size >= maxLoggedFiles) return true;
    this.#logged.add(message);
    this.#log.error("a newer version of the program wrote a file", { error });
    return true;
  }
}
