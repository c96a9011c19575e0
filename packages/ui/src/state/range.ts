/** A range of time as written: `now-1h` to `now`, or milliseconds or nanoseconds since 1970. */
export interface RangeText {
  readonly from: string;
  readonly to: string;
}

/** Half-open, ns. */
export interface Range {
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

const unitSeconds: Readonly<Record<string, bigint>> = {
  ...{ s: 1n, m: 60n, h: 3600n, d: 86_400n, w: 604_800n },
};
export const second = 1_000_000_000n;

/** The range at a moment. One that is empty or turned round becomes the hour before its end. */
export function resolveRange({ from, to }: RangeText, nowMs: number): Range {
  const toNs = resolveTime(to, nowMs);
  const fromNs = resolveTime(from, nowMs);
  return fromNs < toNs ? { fromNs, toNs } : { fromNs: toNs - 3600n * second, toNs };
}

function resolveTime(text: string, nowMs: number): bigint {
  const now = BigInt(Math.floor(nowMs)) * 1_000_000n;
  const [, count, unit] = /^now(?:-(\d+)([smhdw]))?$/.exec(text) ?? [];
  if (count !== undefined && unit !== undefined) {
    return now - BigInt(count) * (unitSeconds[unit] ?? 1n) * second;
  }
  if (!/^\d+$/.test(text)) return now;
  return text.length > 16 ? BigInt(text) : BigInt(text) * 1_000_000n;
}

export const presets = [
  ...["5m", "15m", "30m", "1h", "3h", "6h", "12h", "24h", "2d", "7d", "30d"],
] as const;

const words: Readonly<Record<string, string>> = {
  ...{ s: "s", m: " min", h: " hours", d: " days", w: " weeks" },
};

/** `Last 30 min`, or both times. */
export function describeRange(range: RangeText, zone: Zone, nowMs: number): string {
  const [, count, unit] = /^now-(\d+)([smhdw])$/.exec(range.from) ?? [];
  if (count !== undefined && unit !== undefined && range.to === "now") {
    return `Last ${count}${count === "1" ? (words[unit] ?? "").replace(/s$/, "") : words[unit]}`;
  }
  const { fromNs, toNs } = resolveRange(range, nowMs);
  const [start, end] = [formatTime(fromNs, zone, "s"), formatTime(toNs, zone, "s")];
  const sameDay = start.slice(0, 10) === end.slice(0, 10);
  return `${start} – ${sameDay ? end.slice(11) : end}`;
}

export type Zone = "utc" | "local";

const pad = (value: number, width = 2) => String(value).padStart(width, "0");

/** `2026-11-23 06:00:59.998` in a zone, down to seconds, milliseconds or nanoseconds. */
export function formatTime(ns: bigint | string, zone: Zone, to: "s" | "ms" | "ns" = "ms"): string {
  const whole = typeof ns === "string" ? ns : String(ns);
  const date = new Date(Number(whole.slice(0, -6)));
  if (Number.isNaN(date.getTime())) return whole;
  const [year, month, day, hour, minute, sec, ms] = partsOf(date, zone);
  const head = `${year}-${pad(month + 1)}-${pad(day)} ${pad(hour)}:${pad(minute)}:${pad(sec)}`;
  if (to === "s") return head;
  return `${head}.${pad(ms, 3)}${to === "ns" ? whole.slice(-6) : ""}`;
}

type DateParts = readonly [number, number, number, number, number, number, number];

function partsOf(date: Date, zone: Zone): DateParts {
  if (zone === "local") {
    const day = [date.getFullYear(), date.getMonth(), date.getDate()] as const;
    const time = [date.getHours(), date.getMinutes(), date.getSeconds()] as const;
    return [...day, ...time, date.getMilliseconds()];
  }
  const day = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()] as const;
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()] as const;
  return [...day, ...time, date.getUTCMilliseconds()];
}

/** Milliseconds since 1970 as text for a time written as `2026-11-23 06:00` or as a route writes it; undefined for others. */
export function parseTimeInput(text: string, zone: Zone): string | undefined {
  const trimmed = text.trim();
  if (/^(?:now(?:-\d{1,6}[smhdw])?|\d{12,19})$/.test(trimmed)) return trimmed;
  const iso = trimmed.replace(" ", "T");
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/.test(iso);
  const full = /^\d{4}-\d\d-\d\d$/.test(iso) ? `${iso}T00:00` : iso;
  const ms = Date.parse(hasZone ? full : zone === "utc" ? `${full}Z` : full);
  return Number.isNaN(ms) ? undefined : String(ms);
}

/** A range of the same length, half of it later or earlier. */
export function shiftRange(range: Range, direction: -1 | 1): RangeText {
  const half = ((range.toNs - range.fromNs) / 2n) * BigInt(direction);
  return { from: String(range.fromNs + half), to: String(range.toNs + half) };
}

/** Seconds between points, so that a range has at most that many: 1, 2, 5, 10, 15, 30 seconds, minutes, and so on. */
export function stepFor(range: Range, pointsMax: number): number {
  const seconds = Number((range.toNs - range.fromNs) / second);
  const least = seconds / pointsMax;
  return steps.find((step) => step >= least) ?? Math.ceil(least / 86_400) * 86_400;
}

const steps = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600],
  ...[7200, 10_800, 21_600, 43_200, 86_400],
];
