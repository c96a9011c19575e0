import {
  formatGoDuration,
  formatPrometheusDuration,
  formatRfc3339,
  formatSize,
  nsPerMs,
  parseGoDuration,
  parsePrometheusDuration,
  parseRfc3339,
  parseSize,
} from "@skald/model";

/** A value read from text, or what is wrong with the text. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string };

const words: ReadonlyMap<string, boolean> = new Map(
  Object.entries({
    true: true,
    yes: true,
    on: true,
    t: true,
    "1": true,
    false: false,
    no: false,
    off: false,
    f: false,
    "0": false,
  }),
);

/** `true`, `false` and the other words that YAML 1.1 and flags know. */
export function parseBoolean(text: string): Parsed<boolean> {
  const value = words.get(text.toLowerCase());
  return value === undefined ? { problem: `"${text}" is not true or false` } : { value };
}

/** An integer, also written `1.5e+06`. */
export function parseInteger(text: string): Parsed<number> {
  const value = parseNumber(text);
  if ("problem" in value) return value;
  return Number.isSafeInteger(value.value) ? value : { problem: `"${text}" is not an integer` };
}

export function parseNumber(text: string): Parsed<number> {
  const value = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)
    ? Number(text)
    : Number.NaN;
  return Number.isFinite(value) ? { value } : { problem: `"${text}" is not a number` };
}

/** Milliseconds of `1h30m`, `1.5s`, `7d` or `0`; `-1`, where a range allows it, means without limit. */
export function parseDurationMs(text: string): Parsed<number> {
  if (text === "-1") return { value: -1 };
  const ns = parseGoDuration(text) ?? parsePrometheusDuration(text);
  // In two parts: a double does not hold the nanoseconds of more than 104 days.
  if (ns !== undefined) return { value: Number(ns / nsPerMs) + Number(ns % nsPerMs) / 1e6 };
  const hint = "; write it like 30s, 1h30m or 7d";
  if (/^[+-]?[\d.]+$/.test(text)) return { problem: `missing unit in duration "${text}"${hint}` };
  const units = text.match(/[a-zA-Zµμ]+/g) ?? [];
  const unknown = units.find((unit) => !/^(?:ns|us|µs|μs|ms|s|m|h|d|w|y)$/.test(unit));
  if (unknown !== undefined)
    return { problem: `unknown unit "${unknown}" in duration "${text}"${hint}` };
  return { problem: `"${text}" is not a duration${hint}` };
}

/** Bytes of `256KB`, `1.5GB` (powers of 1024) or a plain number. */
export function parseSizeBytes(text: string): Parsed<number> {
  const value = parseSize(text);
  if (value !== undefined && Number.isSafeInteger(value)) return { value };
  return { problem: `"${text}" is not a size; write bytes, or 256KB, 5MB, 1GB` };
}

/** Milliseconds since the epoch of an RFC 3339 time; 0 for `0` or nothing. */
export function parseTimeMs(text: string): Parsed<number> {
  if (text === "" || text === "0") return { value: 0 };
  const ns = parseRfc3339(text);
  if (ns !== undefined) return { value: Number(ns / nsPerMs) };
  return { problem: `"${text}" is not a time; write it like 2026-01-31T12:00:00Z` };
}

/** Items between commas, trimmed; none for an empty text. */
export function splitList(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/** The shortest common form: `1h30m`, `7d`, `100ms`. */
export function formatDurationMs(ms: number): string {
  const whole = Math.trunc(Math.abs(ms));
  const exact = BigInt(whole) * nsPerMs + BigInt(Math.round((Math.abs(ms) - whole) * 1e6));
  const ns = BigInt(whole) >= maxInt64 / nsPerMs ? maxInt64 : exact;
  const short = ns % nsPerMs === 0n && ns < longestShortNs;
  const text = short ? formatPrometheusDuration(ns) : formatGoDuration(ns);
  return ms < 0 ? `-${text}` : text;
}

/** `256KB` where that says it exactly, else the number of bytes. */
export function formatSizeBytes(bytes: number): string | number {
  const text = formatSize(bytes);
  return bytes >= 1024 && parseSize(text) === bytes ? text : bytes;
}

export function formatTimeMs(ms: number): string | number {
  return ms === 0 ? 0 : formatRfc3339(BigInt(ms) * nsPerMs);
}

const maxInt64 = 9_223_372_036_854_775_807n;
/** A hundred years: longer ones mean "never" and are printed as Go does. */
const longestShortNs = 100n * 365n * 86_400n * 1_000_000_000n;
