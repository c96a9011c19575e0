import { dayNs, floorDiv, invalidArgument } from "@skald/model";

/**
 * Every key of the object store is made and parsed here.
 *
 *     tenant=<tenant>/date=2026-11-20/20261120-101500123456789-105959999999999-<unique>.parquet
 *
 * The two directories are what DuckDB and others know as hive partitions. The id of a segment begins with its day and
 * the times of day of its first and last row, each as HHMMSS and nine digits of ns: ids sort by time, and a listing
 * alone tells which segments a query can skip.
 */
export interface SegmentKey {
  readonly tenant: string;
  readonly id: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
}

/** Id of a segment; `unique` tells it from all others of the same times: letters, digits and `_`, at most 64. */
export function segmentId(times: { minNs: bigint; maxNs: bigint }, unique: string): string {
  if (!/^[A-Za-z0-9_]{1,64}$/.test(unique)) {
    throw invalidArgument(`segment id part ${JSON.stringify(unique)} is not letters, digits and _`);
  }
  const { minNs, maxNs } = times;
  const day = floorDiv(minNs, dayNs);
  if (floorDiv(maxNs, dayNs) !== day || maxNs < minNs) {
    throw new Error(`a segment cannot reach from ${minNs} to ${maxNs}`);
  }
  const date = dateOf(day).replaceAll("-", "");
  return `${date}-${timeOfDay(minNs - day * dayNs)}-${timeOfDay(maxNs - day * dayNs)}-${unique}`;
}

/** The times in a segment id; undefined when it is none. */
export function parseSegmentId(id: string): { minNs: bigint; maxNs: bigint } | undefined {
  const match = /^(\d{4})(\d{2})(\d{2})-(\d{15})-(\d{15})-[A-Za-z0-9_]{1,64}$/.exec(id);
  if (match === null) return undefined;
  const [, year, month, day, min, max] = match;
  const date = `${year}-${month}-${day}`;
  const baseNs = parseDate(date);
  const minTime = parseTimeOfDay(min as string);
  const maxTime = parseTimeOfDay(max as string);
  if (baseNs === undefined || minTime === undefined || maxTime === undefined) return undefined;
  return minTime > maxTime ? undefined : { minNs: baseNs + minTime, maxNs: baseNs + maxTime };
}

export function segmentKey(tenant: string, id: string): string {
  const times = parseSegmentId(id);
  if (times === undefined) throw invalidArgument(`segment id ${JSON.stringify(id)} is not valid`);
  return `${dayPrefix(tenant, times.minNs)}${id}.parquet`;
}

/** What a key says of its segment; undefined for any other object. */
export function parseSegmentKey(key: string): SegmentKey | undefined {
  const match = /^tenant=([^/]+)\/date=(\d{4}-\d{2}-\d{2})\/([^/]+)\.parquet$/.exec(key);
  if (match === null) return undefined;
  const [, escaped = "", date = "", id = ""] = match;
  const tenant = unescapeTenant(escaped);
  const times = parseSegmentId(id);
  if (tenant === undefined || times === undefined) return undefined;
  if (dateOf(floorDiv(times.minNs, dayNs)) !== date) return undefined;
  return { tenant, id, ...times };
}

/** Prefix of all keys of a tenant. */
export function tenantPrefix(tenant: string): string {
  if (tenant === "") throw invalidArgument("tenant is empty");
  return `tenant=${escapeTenant(tenant)}/`;
}

/** Prefix of the segments of a tenant in the UTC day of a time. */
export function dayPrefix(tenant: string, ns: bigint): string {
  return `${tenantPrefix(tenant)}date=${dateOf(floorDiv(ns, dayNs))}/`;
}

/** Everything but what tenant names are made of as a rule is percent-encoded; a slash can never get through. */
function escapeTenant(tenant: string): string {
  return tenant.replace(/[^A-Za-z0-9!\-_.*'()]+/gu, (text) =>
    [...Buffer.from(text, "utf8")]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}

function unescapeTenant(escaped: string): string | undefined {
  try {
    const tenant = decodeURIComponent(escaped);
    return escapeTenant(tenant) === escaped ? tenant : undefined;
  } catch {
    return undefined;
  }
}

/** `2026-11-20` of a number of days since the epoch. */
function dateOf(day: bigint): string {
  return new Date(Number(day) * 86_400_000).toISOString().slice(0, 10);
}

function parseDate(date: string): bigint | undefined {
  const ms = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(ms)) return undefined;
  const day = BigInt(ms) / 86_400_000n;
  return dateOf(day) === date ? day * dayNs : undefined;
}

function timeOfDay(ns: bigint): string {
  const seconds = Number(ns / 1_000_000_000n);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const clock = parts.map((part) => String(part).padStart(2, "0")).join("");
  return clock + (ns % 1_000_000_000n).toString().padStart(9, "0");
}

function parseTimeOfDay(text: string): bigint | undefined {
  const hours = Number(text.slice(0, 2));
  const minutes = Number(text.slice(2, 4));
  const seconds = Number(text.slice(4, 6));
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined;
  return BigInt(hours * 3600 + minutes * 60 + seconds) * 1_000_000_000n + BigInt(text.slice(6));
}
