import { invalidArgument, type Labels, limitReached, SkaldError } from "@skald/model";

export interface BudgetOptions {
  /** Bytes that may be held at a time; no bound if not given. */
  readonly maxBytes?: number;
  /** The refusal of a query that needs more; see `tooMuchMemory` if not given. */
  readonly refuse?: (maxBytes: number) => Error;
  /** Counts the same bytes, for all queries together. */
  readonly memory?: Memory;
  /** Asked every few thousand steps: true stops the query. Never if not given. */
  readonly shouldStop?: () => boolean;
}

/** Memory that several queries share; `take` throws when there is no more of it. */
export interface Memory {
  take(bytes: number): void;
  give(bytes: number): void;
}

/** Between two questions whether to stop: rare enough to cost nothing, some tens of microseconds apart. */
const stepsPerCheck = 4096;
/** What a series takes besides its samples and the texts of its labels. */
const seriesBytes = 384;
const sampleBytes = 9;

/**
 * Counts what a query costs while it is evaluated, and ends it: with `cancelled` when it should stop, with
 * invalid_argument when it holds more than it may. A step is about what one sample, one label or one character costs.
 */
export class Budget {
  readonly #maxBytes: number;
  readonly #refuse: (maxBytes: number) => Error;
  readonly #memory: Memory | undefined;
  readonly #shouldStop: (() => boolean) | undefined;
  #steps = 0;
  #nextCheck = stepsPerCheck;
  #bytes = 0;
  #mostBytes = 0;

  constructor(options: BudgetOptions = {}) {
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY;
    this.#refuse = options.refuse ?? tooMuchMemory;
    this.#memory = options.memory;
    this.#shouldStop = options.shouldStop;
  }

  /** Steps so far. */
  get steps(): number {
    return this.#steps;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The most bytes that were held at a time. */
  get mostBytes(): number {
    return this.#mostBytes;
  }

  /** Counts steps; throws `cancelled` when the query should stop. */
  work(steps: number): void {
    this.#steps += steps;
    if (this.#steps < this.#nextCheck) return;
    this.#nextCheck = this.#steps + stepsPerCheck;
    if (this.#shouldStop?.() === true) throw new SkaldError("cancelled", "the query was stopped");
  }

  /** Counts bytes that are about to be held; throws invalid_argument, or as `memory` does, when they are too many. */
  hold(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) throw this.#refuse(this.#maxBytes);
    this.#memory?.take(bytes);
    if (this.#bytes > this.#mostBytes) this.#mostBytes = this.#bytes;
  }

  /** Counts bytes as no longer held. */
  release(bytes: number): void {
    this.#bytes -= bytes;
    this.#memory?.give(bytes);
  }

  /** Counts bytes that others hold for the query: among those of all queries, not against its own bound. Throws as `memory` does. */
  holdElsewhere(bytes: number): void {
    this.#memory?.take(bytes);
  }

  releaseElsewhere(bytes: number): void {
    this.#memory?.give(bytes);
  }

  /** Counts a series that is made: its labels and a sample per point. */
  holdSeries({ names, values }: Labels, pointCount: number): void {
    let characters = 0;
    for (let i = 0; i < names.length; i++) {
      characters += (names[i] as string).length + (values[i] as string).length;
    }
    this.work(1 + names.length + pointCount);
    this.hold(seriesBytes + characters + pointCount * sampleBytes);
  }
}

/** The refusal of a query that would hold more than it may. */
export function tooMuchMemory(maxBytes: number): Error {
  return limitReached(
    "max_query_memory_bytes",
    `the query needs more than ${maxBytes} bytes of memory (limit: max_query_memory_bytes); narrow the time range or the selectors, lower the parameter limit, raise the step, or aggregate by fewer labels`,
  );
}

/** Bounds of one query; defaults in `defaultQueryLimits`. */
export interface QueryLimits {
  /** Series in the result of a metric query. */
  readonly maxSeries: number;
  /** Too many series: `fail` refuses the query, `truncate` answers the first ones with a warning. */
  readonly onTooManySeries: "fail" | "truncate";
  /** Series of a range aggregation whose series are not those of the result. */
  readonly maxInnerSeries: number;
  /** Accumulators and samples that one scan, or one merged range aggregation, may hold (16 to 24 bytes each). */
  readonly maxCells: number;
}

export const defaultQueryLimits: QueryLimits = {
  maxSeries: 500,
  onTooManySeries: "fail",
  maxInnerSeries: 200_000,
  maxCells: 1 << 24,
};

/** The refusal of a query with more series than it may have. */
export function tooManySeries(limit: number): Error {
  return limitReached(
    "max_query_series",
    `maximum number of series (${limit}) reached for a single query; consider reducing query cardinality by adding more specific stream selectors, reducing the time range, or aggregating results with functions like sum(), count() or topk()`,
  );
}

/** The warning of an answer that holds only the first series. */
export function partialSeriesWarning(limit: number): string {
  return `maximum number of series (${limit}) reached for a single query; returning partial results`;
}

/** The refusal of a query that would hold more than its plan allows. */
export function tooManyCells(limit: number): Error {
  return invalidArgument(
    `the query needs more than ${limit} samples in memory; narrow the time range or the selectors, raise the step, or aggregate by fewer labels`,
  );
}

/** The error of a query that may not read that much. */
export function tooManyBytesRead(bytes: number, limit: number): Error {
  return limitReached(
    "max_query_bytes_read",
    `the query would read too many bytes (query: ${formatBytes(bytes)}, limit: ${formatBytes(limit)}); use a narrower selector or a shorter time range`,
  );
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `512 B`, `5.0 GiB`, `150 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
