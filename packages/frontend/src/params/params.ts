import { type Expr, parseQuery, printQuery } from "@skald/logql";
import {
  describePrometheusDuration,
  invalidArgument,
  nsPerMs,
  nsPerSecond,
  parsePrometheusDuration,
  parseRfc3339,
  quote,
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

const defaultLimit = 100;
const hourNs = 3600n * nsPerSecond;
const maxPoints = 11_000n;

/** Parses the parameters of query_range; throws invalid_argument with the reference's texts. */
export function parseRangeParams(params: URLSearchParams, nowNs: bigint): RangeParams {
  const { startNs, endNs } = parseOrderedBounds(params, nowNs);
  const stepNs = parseStep(params, startNs, endNs);
  const intervalNs = parseSpan(params.get("interval") || "0");
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

/** The query of a tail or of the legacy endpoint: `regexp` is a filter of its lines, behind all other stages. */
export function parseFilteredQuery(params: URLSearchParams): string {
  const query = params.get("query") ?? "";
  const regexp = params.get("regexp") ?? "";
  if (regexp === "") return query;
  const expr = parseQuery(query);
  if (expr.kind !== "log") throw invalidArgument("only log selector is supported");
  const alternatives = [{ kind: "text", value: regexp }] as const;
  const filter = { kind: "line_filter", op: "|~", alternatives } as const;
  return printQuery({ ...expr, stages: [...expr.stages, filter] });
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
  if (timeNs === undefined) throw invalidArgument(integerProblem("ParseInt", text));
  return {
    query: params.get("query") ?? "",
    timeNs,
    limit: parseLimit(params),
    direction: parseDirection(params),
  };
}

/** Start and end of a request for the last hour by default; throws when it ends before it starts. */
export function parseOrderedBounds(
  params: URLSearchParams,
  nowNs: bigint,
): { startNs: bigint; endNs: bigint } {
  const bounds = parseBounds(params, nowNs, hourNs);
  if (bounds.endNs < bounds.startNs)
    throw invalidArgument("end timestamp must not be before or equal to start time");
  return bounds;
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
      `could not parse 'since' parameter: ${describePrometheusDuration(since)}`,
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
    const whole = Math.trunc(seconds);
    const ms = Math.round(Math.abs(seconds - whole) * 1000);
    return BigInt(whole) * nsPerSecond + BigInt(seconds < 0 ? -ms : ms) * nsPerMs;
  }
  const value = parseInt64(text);
  if (value !== undefined) return text.length <= 10 ? value * nsPerSecond : value;
  return parseRfc3339(text);
}

const integerPattern = /^[+-]?\d+$/;
/** Longer texts of digits are not worth reading: they are zeros or too large. */
const digitsMax = 64;
const maxUint32 = 2n ** 32n - 1n;

/** The value of a decimal text of 64 bits, else undefined. */
function parseInt64(text: string): bigint | undefined {
  if (!integerPattern.test(text) || text.length > digitsMax) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** Why a text is not an integer, in the words of Go's parser. */
function integerProblem(parser: "Atoi" | "ParseInt", text: string): string {
  const why = integerPattern.test(text) ? "value out of range" : "invalid syntax";
  return `strconv.${parser}: parsing ${quote(text)}: ${why}`;
}

/** A duration as float seconds, of which whole ms count, or in Prometheus form; ns. */
export function parseSpan(text: string): bigint {
  const seconds = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(seconds) * 1e9 > 2 ** 63) {
    throw invalidArgument(`cannot parse "${text}" to a valid duration. It overflows int64`);
  }
  if (Number.isFinite(seconds)) return (BigInt(Math.trunc(seconds * 1e9)) / nsPerMs) * nsPerMs;
  const duration = parsePrometheusDuration(text);
  if (duration === undefined) throw invalidArgument(`cannot parse "${text}" to a valid duration`);
  return duration;
}

/** A parameter that bounds an answer. */
export interface LimitParam {
  /** The first that is there counts; `limit` if not given. */
  readonly names?: readonly string[];
  /** 100 if not given. */
  readonly fallback?: number;
  /** Whether 0 means the fallback too. */
  readonly zeroIsFallback?: boolean;
}

export function parseLimit(
  params: URLSearchParams,
  { names = ["limit"], fallback = defaultLimit, zeroIsFallback = false }: LimitParam = {},
): number {
  const name = names.find((one) => (params.get(one) ?? "") !== "") ?? "limit";
  const text = params.get(name) ?? "";
  if (text === "" || (zeroIsFallback && text === "0")) return fallback;
  const limit = parseInt64(text);
  if (limit === undefined) throw invalidArgument(integerProblem("Atoi", text));
  if (limit <= 0n) throw invalidArgument(`${name} must be a positive value`);
  if (limit > maxUint32)
    throw invalidArgument(`${name} value ${limit} is out of range [0, ${maxUint32}]`);
  return Number(limit);
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

/** A time under a name; undefined when it is not given. */
function parseNamedTime(params: URLSearchParams, name: string): bigint | undefined {
  const text = params.get(name) ?? "";
  if (text === "") return undefined;
  const time = parseTime(text);
  if (time === undefined) {
    throw invalidArgument(
      `could not parse '${name}' parameter: ${integerProblem("ParseInt", text)}`,
    );
  }
  return time;
}

/** Parsed parameters of a tail; times in ns since the epoch. */
export interface TailParams {
  readonly query: string;
  readonly expr: Expr;
  readonly startNs: bigint;
  /** Rows of the history. */
  readonly limit: number;
  /** How long new rows are held back, so that later ones can come before them. */
  readonly delayMs: number;
}

const maxDelaySeconds = 5n;

/** Parses the parameters of tail; throws invalid_argument with the reference's texts. */
export function parseTailParams(params: URLSearchParams, nowNs: bigint): TailParams {
  const query = parseFilteredQuery(params);
  const expr = parseQuery(query);
  const limit = parseLimit(params);
  const { startNs } = parseBounds(params, nowNs, hourNs);
  return { query, expr, limit, startNs, delayMs: parseDelay(params.get("delay_for") ?? "") };
}

function parseDelay(text: string): number {
  if (text === "") return 0;
  const seconds = parseInt64(text);
  if (seconds === undefined) throw invalidArgument(integerProblem("Atoi", text));
  if (seconds < 0n || seconds > maxUint32) {
    throw invalidArgument(`delay_for value ${seconds} is out of range [0, ${maxUint32}]`);
  }
  if (seconds > maxDelaySeconds) throw invalidArgument("delay_for can't be greater than 5");
  return Number(seconds) * 1000;
}
