import { type Expr, parseQuery } from "@skald/logql";
import { invalidArgument, nsPerSecond } from "@skald/model";
import {
  integerProblem,
  parseBounds,
  parseFilteredQuery,
  parseInt64,
  parseLimit,
} from "../params/params.js";

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
const maxUint32 = 2n ** 32n - 1n;
const hourNs = 3600n * nsPerSecond;

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
