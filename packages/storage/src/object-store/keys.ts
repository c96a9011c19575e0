import { dayNs, floorDiv, invalidArgument } from "@skald/model";

/**
 * Every key of the object store is made and parsed here.
 *
 *     tenant=<tenant>/date=2026-11-20/101500123456789-105959999999999-<id>.parquet
 *
 * The two directories are what DuckDB and others know as hive partitions. The name begins with the times of day of the
 * first and last row, each as HHMMSS and nine digits of ns: names sort by time, and a listing alone shows which
 * segments a query can skip. The id is the one that the segment has on the ingester's disk. A tenant of more than 200
 * bytes takes several directories, `tenant=<200 bytes>~/<the rest>`, because file systems take 255 bytes for each; in a
 * rest of nothing but dots they are escaped too, because `.` and `..` are no names.
 */
export interface SegmentKey {
  readonly tenant: string;
  /** Letters, digits, `_`, `-` and `.`, at most 200. */
  readonly id: string;
  /** ns since the epoch, inclusive; both in one UTC day */
  readonly minNs: bigint;
  readonly maxNs: bigint;
}

const idForm = /^[A-Za-z0-9_.-]{1,200}$/;

export function segmentKey({ tenant, id, minNs, maxNs }: SegmentKey): string {
  if (!idForm.test(id)) throw invalidArgument(`segment id ${JSON.stringify(id)} is not valid`);
  const day = floorDiv(minNs, dayNs);
  if (floorDiv(maxNs, dayNs) !== day || maxNs < minNs) {
    throw new Error(`a segment cannot reach from ${minNs} to ${maxNs}`);
  }
  const times = `${timeOfDay(minNs - day * dayNs)}-${timeOfDay(maxNs - day * dayNs)}`;
  return `${dayPrefix(tenant, minNs)}${times}-${id}.parquet`;
}

/** What a key says of its segment; undefined for any other object. */
export function parseSegmentKey(key: string): SegmentKey | undefined {
  const match =
    /^tenant=((?:[^/]+~\/)*[^/]+)\/date=(\d{4}-\d{2}-\d{2})\/(\d{15})-(\d{15})-([^/]+)\.parquet$/.exec(
      key,
    );
  if (match === null) return undefined;
  const [, escaped = "", date = "", min = "", max = "", id = ""] = match;
  const tenant = tenantOfDirectory(escaped);
  const baseNs = parseDate(date);
  const minTime = parseTimeOfDay(min);
  const maxTime = parseTimeOfDay(max);
  if (tenant === undefined || baseNs === undefined || !idForm.test(id)) return undefined;
  if (minTime === undefined || maxTime === undefined || minTime > maxTime) return undefined;
  return { tenant, id, minNs: baseNs + minTime, maxNs: baseNs + maxTime };
}

/** Prefix of all keys of a tenant. */
export function tenantPrefix(tenant: string): string {
  if (tenant === "") throw invalidArgument("tenant is empty");
  return `tenant=${directoryOfTenant(tenant)}/`;
}

/** The tenant of such a prefix; undefined for any other text. */
export function parseTenantPrefix(prefix: string): string | undefined {
  const match = /^tenant=((?:[^/]+~\/)*[^/]+)\/$/.exec(prefix);
  return match === null ? undefined : tenantOfDirectory(match[1] as string);
}

/** Prefix of the segments of a tenant in the UTC day of a time. */
export function dayPrefix(tenant: string, ns: bigint): string {
  return `${tenantPrefix(tenant)}date=${dateOf(floorDiv(ns, dayNs))}/`;
}

/** Names one state of the index of a tenant's day; see docs/formats/day-index.md. */
export interface DayIndexKey {
  readonly tenant: string;
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
  readonly generation: number;
}

const generationDigits = 10;

/** Sorts behind the segments of the day, by generation. */
export function dayIndexKey({ tenant, baseNs, generation }: DayIndexKey): string {
  const number = String(generation).padStart(generationDigits, "0");
  return `${dayPrefix(tenant, baseNs)}index-${number}.day`;
}

/** What a key says of a day index; undefined for any other object. */
export function parseDayIndexKey(key: string): DayIndexKey | undefined {
  const match = /^(tenant=.+\/date=\d{4}-\d{2}-\d{2}\/)index-(\d{10})\.day$/.exec(key);
  if (match === null) return undefined;
  const day = parseDayPrefix(match[1] as string);
  return day === undefined ? undefined : { ...day, generation: Number(match[2]) };
}

/** What a prefix of the segments of a day says; undefined for any other. */
export function parseDayPrefix(prefix: string): Omit<DayIndexKey, "generation"> | undefined {
  const match = /^tenant=((?:[^/]+~\/)*[^/]+)\/date=(\d{4}-\d{2}-\d{2})\/$/.exec(prefix);
  if (match === null) return undefined;
  const tenant = tenantOfDirectory(match[1] as string);
  const baseNs = parseDate(match[2] as string);
  return tenant === undefined || baseNs === undefined ? undefined : { tenant, baseNs };
}

const mergedPrefix = "merged-";

/** The id of what a compactor makes of some segments; only a day index can say whether it counts. */
export function mergedId(first: Pick<SegmentKey, "id" | "minNs">, hash: string): string {
  return `${mergedPrefix}${arrivalText(first)}-${hash}`;
}

export function isMergedId(id: string): boolean {
  return id.startsWith(mergedPrefix);
}

const maxDirectoryBytes = 200;

/** The mark at the end of all parts but the last keeps the prefix of a tenant from being one of another's keys. */
function directoryOfTenant(tenant: string): string {
  const escaped = escapeTenant(tenant);
  const parts: string[] = [];
  for (let at = 0; at < escaped.length; at += maxDirectoryBytes)
    parts.push(escaped.slice(at, at + maxDirectoryBytes));
  const rest = parts.length > 1 ? (parts.at(-1) as string) : "";
  if (/^\.+$/.test(rest)) parts[parts.length - 1] = rest.replaceAll(".", "%2E");
  return parts.join("~/");
}

function tenantOfDirectory(directory: string): string | undefined {
  const tenant = unescapeTenant(directory.replaceAll("~/", ""));
  return tenant !== undefined && directoryOfTenant(tenant) === directory ? tenant : undefined;
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
    return decodeURIComponent(escaped);
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

/** When the rows of a segment or head arrived, against those of others of its tenant; see docs/formats/segment.md. */
interface Arrival {
  /** When its head was made, ms since the epoch, and the number of that head in its process. */
  readonly createdMs: number;
  readonly number: number;
  /** Place in the log of the last row of a part of a head; infinite for the last part. */
  readonly file: number;
  readonly offset: number;
}

/** What is known of rows that are sealed or held. */
interface Arrived {
  readonly id: string;
  readonly minNs: bigint;
}

const ofHead = /-([0-9a-z]{1,10})-[0-9a-f]{8}-([0-9a-z]{1,10})(?:_(\d+)_(\d+))?$/;
const ofMerged = /^merged-([0-9a-z]{1,10})-([0-9a-z]{1,10})-[0-9a-f]{32}$/;
const msNs = 1_000_000n;

/** The part of an id that says when a head was made; the number of the head in its process orders heads of one millisecond. */
export function headId(instance: string, createdMs: number, start: string, number: number): string {
  return `${instance}-${createdMs.toString(36)}-${start}-${number.toString(36)}`;
}

/** The id of what is merged from some segments: it stands where the first of them did. */
function arrivalText(first: Arrived): string {
  const { createdMs, number } = arrivalOf(first);
  return `${Math.max(0, createdMs).toString(36)}-${number.toString(36)}`;
}

/** What an id says; that of another make stands where its first row does. */
export function arrivalOf({ id, minNs }: Arrived): Arrival {
  const merged = ofMerged.exec(id);
  if (merged !== null) {
    const [, createdMs = "", number = ""] = merged;
    return { createdMs: base36(createdMs), number: base36(number), file: 0, offset: 0 };
  }
  const head = ofHead.exec(id);
  if (head === null) return { createdMs: Number(minNs / msNs), number: 0, file: 0, offset: 0 };
  const [, createdMs = "", number = "", file, offset] = head;
  return {
    createdMs: base36(createdMs),
    number: base36(number),
    file: file === undefined ? Number.POSITIVE_INFINITY : Number(file),
    offset: offset === undefined ? 0 : Number(offset),
  };
}

/** The same, each with its arrival, those that arrived first before the others. */
export function inOrderOfArrival<T extends Arrived>(some: readonly T[]): T[] {
  return some
    .map((one) => ({ one, arrival: arrivalOf(one) }))
    .sort((a, b) => compareArrival(a.arrival, b.arrival) || compareFirst(a.one, b.one))
    .map(({ one }) => one);
}

function compareArrival(a: Arrival, b: Arrival): number {
  return (
    a.createdMs - b.createdMs ||
    a.number - b.number ||
    compareNumbers(a.file, b.file) ||
    a.offset - b.offset
  );
}

/** Orders by the first row, and by id where two begin at the same time. */
export function compareFirst(a: Arrived, b: Arrived): number {
  if (a.minNs !== b.minNs) return a.minNs < b.minNs ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** Also of two that are infinite. */
function compareNumbers(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function base36(text: string): number {
  return Number.parseInt(text, 36);
}
