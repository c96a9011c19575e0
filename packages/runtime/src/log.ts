import { invalidArgument, SkaldError } from "@skald/model";
import { destination, type Logger as PinoLogger, pino } from "pino";
import {
  isLogLevel,
  type LogFields,
  type Logger,
  type LogLevel,
  logLevels,
  messageWithCauses,
} from "./logger.js";
import { currentTrace } from "./tracing.js";

export interface LogOptions {
  readonly level?: LogLevel;
  /** One JSON object or one line of `key=value` pairs per message. */
  readonly format?: "json" | "logfmt";
  /** Where the lines go: a file descriptor, or for tests anything that takes text. */
  readonly target?: "stdout" | "stderr" | { write(line: string): void };
}

/** The root logger of the process. Writes synchronously, so that the last line before a crash is there. */
export function createLogger(options: LogOptions = {}): Logger {
  const shared: SharedLevel = { rank: rankOf(options.level ?? "info"), onLine: undefined };
  const lines = pino(
    {
      level: "debug",
      base: null,
      messageKey: "msg",
      timestamp: () => `,"ts":"${new Date().toISOString()}"`,
      formatters: { level: (level) => ({ level }) },
    },
    targetOf(options),
  );
  return wrap(lines, shared);
}

/** A logger that drops everything: for tests and tools. */
export function silentLogger(): Logger {
  return createLogger({ level: "error", target: { write: () => undefined } });
}

interface SharedLevel {
  rank: number;
  onLine: ((level: LogLevel) => void) | undefined;
}

// A child of pino keeps the level that it was made with, so the level is held here and pino writes all it gets.
function wrap(lines: PinoLogger, shared: SharedLevel): Logger {
  const write = (level: LogLevel, message: string, fields: LogFields | undefined): void => {
    if (rankOf(level) < shared.rank) return;
    shared.onLine?.(level);
    const trace = currentTrace();
    const all = trace === undefined ? fields : { ...fields, traceID: trace.traceId };
    if (all === undefined) lines[level](message);
    else lines[level](printable(all), message);
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
    child: (fields) => wrap(lines.child(printable(fields)), shared),
    isEnabled: (level) => rankOf(level) >= shared.rank,
    level: () => logLevels[shared.rank] as LogLevel,
    setLevel: (level) => {
      if (!isLogLevel(level)) throw invalidArgument(`unrecognized log level "${level}"`);
      shared.rank = rankOf(level);
    },
    onLine: (count) => {
      shared.onLine = count;
    },
  };
}

function targetOf(options: LogOptions): { write(line: string): void } {
  const target = options.target ?? "stderr";
  const fd = target === "stdout" ? 1 : 2;
  const stream = typeof target === "string" ? destination({ fd, sync: true }) : target;
  if (options.format !== "logfmt") return stream;
  return {
    write: (line) => {
      stream.write(`${formatLogfmt(JSON.parse(line) as Record<string, unknown>)}\n`);
    },
  };
}

function rankOf(level: LogLevel): number {
  return logLevels.indexOf(level);
}

/** Errors as text and bigints as numbers in text; everything else as it is. */
function printable(fields: LogFields): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === "bigint") out[key] = value.toString();
    else if (value instanceof Error) Object.assign(out, errorFields(key, value));
    else out[key] = value;
  }
  return out;
}

function errorFields(key: string, error: Error): Record<string, unknown> {
  const out: Record<string, unknown> = { [key]: messageWithCauses(error) };
  if (error instanceof SkaldError) out.code = error.code;
  else if (error.stack !== undefined) out.stack = error.stack;
  return out;
}

/** One line of `key=value` pairs, without the line end; values with spaces, quotes or `=` are quoted as JSON. */
function formatLogfmt(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key.replace(/[\s="]/g, "_")}=${formatValue(value)}`)
    .join(" ");
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "null";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return /^[^\s"=\p{Cc}]+$/u.test(text) ? text : JSON.stringify(text);
}
