import type { LogResult, QueryResult } from "@skald/logql";
import { addReadStats, emptyReadStats, type QueryStats, type ReadStats } from "@skald/model";
import type { Exclusions, Scanner, ScanSource, TimeSpan } from "@skald/storage";
import type { PlannedSource } from "../find/order-sources.js";
import { type QueryByteLimits, tooManyBytesRead } from "./byte-limits.js";
import type { QueryTask } from "./cut-tasks.js";

/** Scans in flight per thread: one runs, one waits, so that no thread idles between two. */
const tasksPerThread = 2;

/** One query while it runs: what its scans report, and what was found out about its sources. */
export class QueryRun {
  readonly limits: QueryByteLimits;
  readonly scans: Scanner;
  /** Whether listings must not be older than the query. */
  readonly fresh: boolean;
  readonly #started = performance.now();
  readonly #ingester = emptyReadStats();
  readonly #store = emptyReadStats();
  readonly #exclusions = new Map<PlannedSource, Promise<Exclusions>>();
  #streams = 0;
  #shards = 0;

  constructor(options: Pick<QueryRun, "limits" | "scans" | "fresh">) {
    this.limits = options.limits;
    this.scans = options.scans;
    this.fresh = options.fresh;
  }

  /** Scans in flight. */
  get lanes(): number {
    return this.scans.width * tasksPerThread;
  }

  see(sources: readonly PlannedSource[]): void {
    for (const { side } of sources) this.#side(side).sources++;
  }

  /** Counts what a scan read. Throws invalid_argument when all of them have read more than the query may. */
  add(task: QueryTask, outcome: { readonly stats: ReadStats; readonly streams: number }): void {
    addReadStats(this.#side(task.side), outcome.stats);
    this.#streams = Math.max(this.#streams, outcome.streams);
    this.#shards++;
    const { maxBytesRead } = this.limits;
    const bytes = bytesOf(this.#ingester) + bytesOf(this.#store);
    if (maxBytesRead > 0 && bytes > maxBytesRead) throw tooManyBytesRead(bytes, maxBytesRead);
  }

  /** The sources of a task as a scan takes them, with the rows that older sources have too. */
  async resolve(task: QueryTask, span: TimeSpan, signal: AbortSignal): Promise<ScanSource[]> {
    return Promise.all(
      task.sources.map(async ({ source, part }) => ({
        ...scanSource(source, part),
        ...(source.older.length === 0
          ? {}
          : { exclusions: await this.#exclusionsOf(source, span, signal) }),
      })),
    );
  }

  stats(result: QueryResult | LogResult): QueryStats {
    return {
      ingester: this.#ingester,
      store: this.#store,
      ingestersReached: 1,
      streams: this.#streams,
      execSeconds: (performance.now() - this.#started) / 1000,
      queueSeconds: 0,
      entriesReturned: result.kind === "streams" ? result.rowCount : 0,
      splits: 1,
      shards: this.#shards,
    };
  }

  /** Found out once per query: parts of a source and several leaves ask for the same. */
  #exclusionsOf(source: PlannedSource, span: TimeSpan, signal: AbortSignal): Promise<Exclusions> {
    const known = this.#exclusions.get(source);
    if (known !== undefined) return known;
    const task = { newer: source.ref, older: source.older, span };
    const finding = this.scans.duplicates(task, signal);
    this.#exclusions.set(source, finding);
    return finding;
  }

  #side(side: PlannedSource["side"]): ReadStats {
    return side === "ingester" ? this.#ingester : this.#store;
  }
}

/** A source for a scan that does not mind duplicates. */
export function scanSource(
  { ref, sequence, tenantLabel }: PlannedSource,
  part: QueryTask["sources"][number]["part"],
): ScanSource {
  return {
    ref,
    sequence,
    ...(part === undefined ? {} : { part }),
    ...(tenantLabel === undefined ? {} : { tenantLabel }),
  };
}

function bytesOf({ headBytes, decompressedBytes }: ReadStats): number {
  return headBytes + decompressedBytes;
}
