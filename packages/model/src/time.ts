/** Reads time; tests replace it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };

/** Tells how much time has passed: for ages and pauses, because unlike the time of day it is never set back. */
export interface SteadyClock {
  /** Milliseconds since a moment that stays the same while the process runs. */
  elapsedMs(): number;
}

export const steadyClock: SteadyClock = { elapsedMs: () => performance.now() };

export const nsPerMs = 1_000_000n;
export const nsPerSecond = 1_000_000_000n;

/** The times `fromNs <= t < toNs`, ns since the epoch. */
export interface TimeRange {
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** Now in ns since the epoch, with the millisecond resolution of the clock. */
export function nowNs(clock: Clock): bigint {
  return BigInt(clock.nowMs()) * nsPerMs;
}

/** `2026-11-20T10:00:00.123456789Z`: RFC 3339 with as many fraction digits as needed. */
export function formatRfc3339(ns: bigint): string {
  const seconds = floorDiv(ns, nsPerSecond);
  const fraction = ns - seconds * nsPerSecond;
  const head = new Date(Number(seconds) * 1000).toISOString().slice(0, -5);
  if (fraction === 0n) return `${head}Z`;
  return `${head}.${fraction.toString().padStart(9, "0").replace(/0+$/, "")}Z`;
}

const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,}))?(?:([Zz])|([+-])(\d{2}):(\d{2}))$/;

/** Parses RFC 3339 with an optional fraction, cut to ns; undefined when it is not that. */
export function parseRfc3339(text: string): bigint | undefined {
  const m = rfc3339.exec(text);
  if (m === null) return undefined;
  const [year, month, day, hour, minute, second] = m.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59)
    return undefined;
  // Not Date.UTC, which takes the years 0 to 99 for those of the last century.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1) return undefined;
  const ms = date.setUTCHours(hour, minute, second);
  const offsetMinutes =
    m[8] === undefined ? Number(`${m[9]}1`) * (Number(m[10]) * 60 + Number(m[11])) : 0;
  const fraction = BigInt((m[7] ?? "").slice(0, 9).padEnd(9, "0"));
  return BigInt(ms - offsetMinutes * 60_000) * nsPerMs + fraction;
}

/** Division that rounds towards minus infinity. */
export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}
