import type { QueryAnswer } from "@skald/contracts";
import {
  joinLogResults,
  type LogResult,
  lineMemory,
  type QueryParams,
  tooMuchMemory,
} from "@skald/logql";
import { floorDiv, joinQueryStats } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import { bytesRead, partBytes } from "./part-lengths.js";

/** A log query that may be asked for in parts of its time. */
export interface LogQuery {
  readonly params: QueryParams;
  /** Answers the query over some of its time. */
  readonly ask: (params: QueryParams, signal: AbortSignal) => Promise<QueryAnswer>;
  /** Parts end at multiples of this many ns since the epoch; 0n: it is asked for as a whole. */
  readonly splitNs: bigint;
  /** Parts that are asked for at a time. */
  readonly parallelism: number;
  /** Memory that the rows of the answer may take. */
  readonly maxMemoryBytes: number;
}

/** Memory of a row without its line. */
const rowBytes = 64;

/**
 * Answers a log query from the end of its time where its rows begin: the first part alone, then twice as many at a time, until
 * there are as many rows as it may have. Where there is little to read, parts are longer: the rest may be one. The first part
 * that fails fails it, and ends the others.
 */
export async function answerLogs(query: LogQuery, signal: AbortSignal): Promise<QueryAnswer> {
  const { params, ask } = query;
  if (!isLong(query)) return ask(params, signal);
  const started = performance.now();
  const left = new TimeLeft(query);
  const answers: QueryAnswer[] = [];
  const found: LogResult[] = [];
  let rows = 0;
  for (let width = 1; !left.isOver && rows < params.limit; width *= 2) {
    const wave = left.take(
      Math.min(width, query.parallelism),
      lengthAfter(answers, left.intervals),
    );
    const limit = params.limit - rows;
    const told = new Map<TimePart, QueryAnswer>();
    await runConcurrently(wave, wave.length, signal, async (part, stop) => {
      told.set(part, await ask({ ...params, ...part, limit }, stop));
    });
    signal.throwIfAborted();
    for (const part of wave) {
      const answer = told.get(part) as QueryAnswer;
      const { result } = answer;
      if (result.kind !== "streams")
        throw new Error(`a log query was answered with a ${result.kind}`);
      answers.push(answer);
      found.push(result);
      rows += result.rowCount;
    }
    checkMemory(found, query.maxMemoryBytes);
  }
  const result = joinLogResults(found, params.limit);
  const stats = {
    ...joinQueryStats(answers.map((answer) => answer.stats)),
    subqueries: answers.length,
    entriesReturned: result.rowCount,
    execSeconds: (performance.now() - started) / 1000,
  };
  return { result, stats };
}

/** Whether a query is worth more than one call. */
function isLong({ params, splitNs }: LogQuery): boolean {
  const { startNs, endNs, intervalNs } = params;
  // Which rows are an interval apart depends on all rows before them.
  return splitNs > 0n && intervalNs === 0n && endNs - startNs >= 2n * splitNs;
}

/** Intervals that the next parts may have each, by what was read so far. */
function lengthAfter(answers: readonly QueryAnswer[], intervals: number): number {
  if (answers.length === 0) return 1;
  const bytes = answers.reduce((n, { stats }) => n + bytesRead(stats), 0);
  return Math.max(1, Math.floor((partBytes * intervals) / Math.max(1, bytes)));
}

type TimePart = Pick<QueryParams, "startNs" | "endNs">;

/** The time of a query that is still to be asked for. */
class TimeLeft {
  readonly #isBackward: boolean;
  readonly #splitNs: bigint;
  #startNs: bigint;
  #endNs: bigint;
  #takenNs = 0n;

  constructor({ params, splitNs }: LogQuery) {
    this.#isBackward = params.direction === "backward";
    this.#splitNs = splitNs;
    this.#startNs = params.startNs;
    this.#endNs = params.endNs;
  }

  get isOver(): boolean {
    return this.#startNs >= this.#endNs;
  }

  /** Intervals that were taken; they need not be whole. */
  get intervals(): number {
    return Number(this.#takenNs) / Number(this.#splitNs);
  }

  /** The next `count` parts, each as long as a number of intervals. */
  take(count: number, intervals: number): TimePart[] {
    const parts: TimePart[] = [];
    while (parts.length < count && !this.isOver) parts.push(this.#next(BigInt(intervals)));
    return parts;
  }

  #next(intervals: bigint): TimePart {
    const [startNs, endNs, ns] = [this.#startNs, this.#endNs, this.#splitNs];
    // Parts end at multiples of the interval.
    const begin = (-floorDiv(-endNs, ns) - intervals) * ns;
    const end = (floorDiv(startNs, ns) + intervals) * ns;
    const part = this.#isBackward
      ? { startNs: begin > startNs ? begin : startNs, endNs }
      : { startNs, endNs: end < endNs ? end : endNs };
    if (this.#isBackward) this.#endNs = part.startNs;
    else this.#startNs = part.endNs;
    this.#takenNs += part.endNs - part.startNs;
    return part;
  }
}

function checkMemory(found: readonly LogResult[], maxBytes: number): void {
  const bytes = found.reduce(
    (n, { rowCount, lines }) => n + rowCount * rowBytes + lineMemory(lines),
    0,
  );
  if (bytes > maxBytes) throw tooMuchMemory(maxBytes);
}
