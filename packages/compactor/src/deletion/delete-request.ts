import type { RowFilter } from "@skald/contracts";
import { type LogExpr, parseQuery } from "@skald/logql";
import {
  formatGoDuration,
  invalidArgument,
  nsPerMs,
  nsPerSecond,
  parseGoDuration,
  parseRfc3339,
  type TimeRange,
} from "@skald/model";

/** What a client asked to delete, as stored. */
export interface DeleteRequest {
  /** Eight hexadecimal digits, unique within the tenant. */
  readonly id: string;
  readonly tenant: string;
  /** The log query whose rows are deleted. */
  readonly query: string;
  /**
   * Ascending, ms since the epoch: part i is from bound i up to bound i + 1, which belongs to the next part; to the last
   * part its end belongs, too.
   */
  readonly boundsMs: readonly number[];
  readonly createdMs: number;
  /** When it was cancelled, after some of its parts were done. */
  readonly cancelledMs?: number;
  /** When its text was taken out, long after it was finished: `query` is `redactedQuery` since then. */
  readonly redactedMs?: number;
}

/** Stands for the text of a finished request, which may itself tell what was deleted. It is a query that finds nothing. */
export const redactedQuery = '{__redacted__="true"}';

/** The progress of a request. */
export interface DeleteProgress {
  /** Numbers of the parts whose rows are gone from the store, ascending. */
  readonly done: readonly number[];
  /** When the last part was done. */
  readonly doneMs?: number;
}

export const noProgress: DeleteProgress = { done: [] };

/** Most parts of one request. */
const maxParts = 10_000;

/** A request with its progress and its parsed query. */
export interface KnownRequest {
  readonly request: DeleteRequest;
  readonly progress: DeleteProgress;
  /** The query, parsed. */
  readonly log: LogExpr;
}

export function partCount({ boundsMs }: DeleteRequest): number {
  return boundsMs.length - 1;
}

/** True when there is nothing left to delete or to hide. */
export function isFinished({ request, progress }: Omit<KnownRequest, "log">): boolean {
  const { cancelledMs, redactedMs } = request;
  // Only finished requests are redacted. Without its text a request could neither hide nor delete rows.
  if (cancelledMs !== undefined || redactedMs !== undefined) return true;
  return progress.done.length >= partCount(request);
}

/** When a request was finished, ms since the epoch; its creation where an earlier version did not note that. */
export function finishedMs({ request, progress }: Omit<KnownRequest, "log">): number {
  return request.cancelledMs ?? progress.doneMs ?? request.createdMs;
}

/** The status in the list of requests. */
export function statusOf(known: Omit<KnownRequest, "log">): string {
  if (isFinished(known)) return "processed";
  const done = known.progress.done.length;
  return done === 0
    ? "received"
    : `${Math.floor((100 * done) / partCount(known.request))}% Complete`;
}

/** Consecutive open parts of a request: [from, to). */
interface PartRange {
  readonly from: number;
  readonly to: number;
}

export function openParts({ request, progress }: Omit<KnownRequest, "log">): PartRange[] {
  const ranges: PartRange[] = [];
  let from = 0;
  for (const part of [...progress.done, partCount(request)]) {
    if (from < part) ranges.push({ from, to: part });
    from = part + 1;
  }
  return ranges;
}

export function rangeOfParts({ boundsMs }: DeleteRequest, { from, to }: PartRange): TimeRange {
  const isLast = to === boundsMs.length - 1;
  return {
    fromNs: BigInt(boundsMs[from]!) * nsPerMs,
    toNs: BigInt(boundsMs[to]!) * nsPerMs + (isLast ? 1n : 0n),
  };
}

/** The open parts of a request as row filters, where they touch a range. */
export function filtersOf(known: KnownRequest, { fromNs, toNs }: TimeRange): RowFilter[] {
  const { request, log } = known;
  if (isFinished(known)) return [];
  return openParts(known)
    .map((parts) => ({
      id: `${request.tenant}/${request.id}/${parts.from}-${parts.to}`,
      ...rangeOfParts(request, parts),
      log,
      nowNs: BigInt(request.createdMs) * nsPerMs,
    }))
    .filter((filter) => filter.fromNs < toNs && filter.toNs > fromNs);
}

/** Parses the query of a request. Throws for anything but a log query. */
export function parseDeleteQuery(query: string): LogExpr {
  const expr = parseQuery(query);
  if (expr.kind !== "log") throw new Error("not a log query");
  return expr;
}

/** Splits a range at multiples of an interval, or of a multiple of it where that makes too many parts. */
function splitRange(startMs: number, endMs: number, intervalMs: number): number[] {
  const least = Math.ceil((endMs - startMs) / (maxParts - 1));
  const stepMs = intervalMs * Math.max(1, Math.ceil(least / intervalMs));
  const bounds = [startMs];
  for (let at = (Math.floor(startMs / stepMs) + 1) * stepMs; at < endMs; at += stepMs)
    bounds.push(at);
  return [...bounds, endMs];
}

/** What a client asks to delete. */
export interface AskedDelete {
  readonly query: string;
  readonly log: LogExpr;
  /** See `DeleteRequest.boundsMs`. */
  readonly boundsMs: readonly number[];
}

interface ParseDeleteOptions {
  readonly nowMs: number;
  /** Requests with a filter are split into parts of this length, or of a shorter one that they ask for. */
  readonly maxIntervalMs: number;
}

/** Reads the parameters of a delete request. Throws invalid_argument with Loki's texts. */
export function parseDelete(params: URLSearchParams, options: ParseDeleteOptions): AskedDelete {
  const query = params.get("query") ?? "";
  if (query === "") throw invalidArgument("query not set");
  const log = parseLog(query);
  const start = params.get("start") ?? "";
  if (start === "") throw invalidArgument("start time not set");
  const startMs = parseTimeMs("start", start);
  const end = params.get("end") ?? "";
  const endMs = end === "" ? options.nowMs : parseTimeMs("end", end);
  if (endMs > options.nowMs) throw invalidArgument("deletes in the future are not allowed");
  if (startMs >= endMs)
    throw invalidArgument("start time can't be greater than or equal to end time");
  const intervalMs = parseInterval(params.get("max_interval") ?? "");
  // Without a filter whole streams go, so parts would save nothing.
  if (log.stages.length === 0) return { query, log, boundsMs: [startMs, endMs] };
  checkInterval(intervalMs, endMs - startMs, options);
  const partMs = intervalMs ?? options.maxIntervalMs;
  return { query, log, boundsMs: splitRange(startMs, endMs, partMs) };
}

/** Reads the range of a list of requests; undefined unless both ends are given. */
export function parseListRange(
  params: URLSearchParams,
): { readonly startMs: number; readonly endMs: number } | undefined {
  const start = params.get("start") ?? "";
  const end = params.get("end") ?? "";
  if (start === "" || end === "") return undefined;
  return { startMs: parseTimeMs("start", start), endMs: parseTimeMs("end", end) };
}

function parseLog(query: string): LogExpr {
  try {
    return parseDeleteQuery(query);
  } catch (cause) {
    throw invalidArgument("invalid query expression", { cause });
  }
}

/** Unix seconds must have ten digits: other units would be off by decades. */
function parseTimeMs(name: "start" | "end", text: string): number {
  if (/^\d{10}$/.test(text)) return Number(text) * 1000;
  const ns = parseRfc3339(text);
  if (ns !== undefined) return Number(ns / nsPerMs);
  throw invalidArgument(`invalid ${name} time: require unix seconds or RFC3339 format`);
}

/** The longest part of a request in ms; undefined where none is asked for. */
function parseInterval(text: string): number | undefined {
  if (text === "") return undefined;
  const ns = parseGoDuration(text);
  if (ns === undefined || ns < nsPerSecond)
    throw invalidArgument("invalid max_interval: valid time units are 's', 'm', 'h'");
  return Number(ns / nsPerMs);
}

function checkInterval(
  intervalMs: number | undefined,
  rangeMs: number,
  { maxIntervalMs }: ParseDeleteOptions,
): void {
  if (intervalMs === undefined) return;
  if (intervalMs > maxIntervalMs)
    throw invalidArgument(`max_interval can't be greater than ${shown(maxIntervalMs)}`);
  if (intervalMs > rangeMs)
    throw invalidArgument(
      `max_interval can't be greater than the interval to be deleted (${shown(rangeMs)})`,
    );
}

function shown(ms: number): string {
  return formatGoDuration(BigInt(ms) * nsPerMs);
}
