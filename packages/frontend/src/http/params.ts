import {
  invalidArgument,
  nsPerMs,
  nsPerSecond,
  parsePrometheusDuration,
  parseRfc3339,
} from "@skald/model";

/** Parsed parameters of a range query; times in ns since the epoch. */
export interface RangeParams {
  readonly query: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly stepNs: bigint;
  readonly intervalNs: bigint;
  readonly limit: number;
  readonly direction: Direction;
}

export type Direction = "forward" | "backward";

export const defaultLimit = 100;
const hourNs = 3600n * nsPerSecond;
const maxPoints = 11_000n;

/** Parses the parameters of query_range; throws invalid_argument with the reference's texts. */
export function parseRangeParams(params: URLSearchParams, nowNs: bigint): RangeParams {
  const { startNs, endNs } = parseBounds(params, nowNs, hourNs);
  if (endNs < startNs)
    throw invalidArgument("end timestamp must not be before or equal to start time");
  const stepNs = parseStep(params, startNs, endNs);
  const intervalNs = parseSpan(params.get("interval") ?? "0");
  if (intervalNs < 0n) throw invalidArgument("interval must be >= 0");
  return {
    query: params.get("query") ?? "",
    startNs,
    endNs,
    stepNs,
    intervalNs,
    limit: parseLimit(params),
    direction: parseDirection(params),
  };
}

export interface InstantParams {
  readonly query: string;
  readonly timeNs: bigint;
  readonly limit: number;
  readonly direction: Direction;
}

export function parseInstantParams(params: URLSearchParams, nowNs: bigint): InstantParams {
  const text = params.get("time") ?? "";
  const timeNs = text === "" ? nowNs : parseTime(text);
  if (timeNs === undefined)
    throw invalidArgument(`strconv.ParseInt: parsing "${text}": invalid syntax`);
  return {
    query: params.get("query") ?? "",
    timeNs,
    limit: parseLimit(params),
    direction: parseDirection(params),
  };
}

/** Start and end of a request; start defaults to `min(end, now) - since`, since to `defaultSinceNs`. */
export function parseBounds(
  params: URLSearchParams,
  nowNs: bigint,
  defaultSinceNs: bigint,
): { startNs: bigint; endNs: bigint } {
  const since = params.get("since") ?? "";
  const sinceNs = since === "" ? defaultSinceNs : parsePrometheusDuration(since);
  if (sinceNs === undefined) {
    throw invalidArgument(
      `could not parse 'since' parameter: not a valid duration string: "${since}"`,
    );
  }
  const endNs = parseNamedTime(params, "end") ?? nowNs;
  const anchor = endNs < nowNs ? endNs : nowNs;
  const startNs = parseNamedTime(params, "start") ?? anchor - sinceNs;
  return { startNs, endNs };
}

/**
 * Reads every timestamp form of the API: seconds (up to ten characters), nanoseconds, seconds with a fraction
 * (rounded to ms), RFC 3339. undefined when it is none of them.
 */
export function parseTime(text: string): bigint | undefined {
  if (text.includes(".") && !text.includes(":")) {
    const seconds = Number(text);
    if (text.trim() !== text || !Number.isFinite(seconds)) return undefined;
    return BigInt(Math.round(seconds * 1000)) * nsPerMs;
  }
  if (/^[+-]?\d+$/.test(text)) {
    const value = BigInt(text.startsWith("+") ? text.slice(1) : text);
    return text.length <= 10 ? value * nsPerSecond : value;
  }
  return parseRfc3339(text);
}

/** A duration as float seconds or in Prometheus form; ns. */
export function parseSpan(text: string): bigint {
  const seconds = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  if (Number.isFinite(seconds)) return BigInt(Math.round(seconds * 1000)) * nsPerMs;
  const duration = parsePrometheusDuration(text);
  if (duration === undefined) throw invalidArgument(`cannot parse "${text}" to a valid duration`);
  return duration;
}

export function parseLimit(params: URLSearchParams): number {
  const text = params.get("limit") ?? "";
  if (text === "") return defaultLimit;
  if (!/^[+-]?\d+$/.test(text))
    throw invalidArgument(`strconv.Atoi: parsing "${text}": invalid syntax`);
  const limit = Number(text);
  if (limit <= 0) throw invalidArgument("limit must be a positive value");
  if (!Number.isSafeInteger(limit))
    throw invalidArgument(`strconv.Atoi: parsing "${text}": value out of range`);
  return limit;
}

function parseDirection(params: URLSearchParams): Direction {
  const text = params.get("direction") ?? "";
  const direction = text === "" ? "backward" : text.toLowerCase();
  if (direction === "forward" || direction === "backward") return direction;
  throw invalidArgument(`invalid direction '${text}'`);
}

/** The step, default `max(range / 250, 1 s)` in whole seconds; refuses zero, negative, and too many points. */
export function parseStep(params: URLSearchParams, startNs: bigint, endNs: bigint): bigint {
  const text = params.get("step") ?? "";
  const stepNs = text === "" ? defaultStepNs(startNs, endNs) : parseSpan(text);
  if (stepNs <= 0n) {
    throw invalidArgument(
      "zero or negative query resolution step widths are not accepted. Try a positive integer",
    );
  }
  if ((endNs - startNs) / stepNs > maxPoints) {
    throw invalidArgument(
      "exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter",
    );
  }
  return stepNs;
}

function defaultStepNs(startNs: bigint, endNs: bigint): bigint {
  const seconds = (endNs - startNs) / nsPerSecond / 250n;
  return (seconds < 1n ? 1n : seconds) * nsPerSecond;
}

function parseNamedTime(params: URLSearchParams, name: string): bigint | undefined {
  const text = params.get(name) ?? "";
  if (text === "") return undefined;
  const time = parseTime(text);
  if (time === undefined) {
    throw invalidArgument(
      `could not parse '${name}' parameter: parsing time "${text}" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "${text}" as "2006"`,
    );
  }
  return time;
}
