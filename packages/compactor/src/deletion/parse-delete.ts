import type { LogExpr } from "@skald/logql";
import {
  formatGoDuration,
  invalidArgument,
  nsPerMs,
  nsPerSecond,
  parseGoDuration,
  parseRfc3339,
} from "@skald/model";
import { parseDeleteQuery, splitRange } from "./delete-request.js";

/** What a client asks to be deleted. */
export interface AskedDelete {
  readonly query: string;
  readonly log: LogExpr;
  /** See `DeleteRequest.boundsMs`. */
  readonly boundsMs: readonly number[];
}

export interface ParseDeleteOptions {
  readonly nowMs: number;
  /** Requests with a filter are split into parts of this time, or of the shorter one that they ask for. */
  readonly maxIntervalMs: number;
}

/** Reads the parameters of a delete request; throws invalid_argument with the reference's texts. */
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
  // Without a filter whole streams go: there is little to do for each part of the time.
  if (log.stages.length === 0) return { query, log, boundsMs: [startMs, endMs] };
  const intervalMs = parseInterval(params.get("max_interval") ?? "", endMs - startMs, options);
  return { query, log, boundsMs: splitRange(startMs, endMs, intervalMs) };
}

/** Times that the list of requests is asked for; absent unless both are given. */
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

/** Unix seconds have ten digits: other units would be off by decades. */
function parseTimeMs(name: "start" | "end", text: string): number {
  if (/^\d{10}$/.test(text)) return Number(text) * 1000;
  const ns = parseRfc3339(text);
  if (ns !== undefined) return Number(ns / nsPerMs);
  throw invalidArgument(`invalid ${name} time: require unix seconds or RFC3339 format`);
}

function parseInterval(text: string, rangeMs: number, { maxIntervalMs }: ParseDeleteOptions) {
  if (text === "") return maxIntervalMs;
  const ns = parseGoDuration(text);
  if (ns === undefined || ns < nsPerSecond)
    throw invalidArgument("invalid max_interval: valid time units are 's', 'm', 'h'");
  const intervalMs = Number(ns / nsPerMs);
  if (intervalMs > maxIntervalMs)
    throw invalidArgument(`max_interval can't be greater than ${shown(maxIntervalMs)}`);
  if (intervalMs > rangeMs)
    throw invalidArgument(
      `max_interval can't be greater than the interval to be deleted (${shown(rangeMs)})`,
    );
  return intervalMs;
}

function shown(ms: number): string {
  return formatGoDuration(BigInt(ms) * nsPerMs);
}
