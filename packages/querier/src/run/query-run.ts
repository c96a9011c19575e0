import {
  decodeOutcome,
  decodeVolumes,
  type EncodedOutcome,
  type Measured,
  type QueryByteLimits,
  type QueryRequest,
  type QueryShare,
  type Scanner,
  type ScanOutcome,
  type ScanPlan,
  type ScanSource,
  type ScanTask,
  type VolumeOutcome,
  type VolumePlan,
} from "@skald/contracts";
import {
  type Budget,
  entriesOf,
  type LeafPlan,
  type LogResult,
  type QueryResult,
  tooManyBytesRead,
} from "@skald/logql";
import {
  addReadStats,
  emptyReadStats,
  type QueryStats,
  type ReadStats,
  type TimeRange,
} from "@skald/model";
import { uniteMasks, urgentBytes } from "@skald/scan";
import { instanceOf, type PlannedSource, type Side } from "../find/order-sources.js";
import type { LeafCount } from "../find/source-finder.js";
import type { LeftOut } from "../replicas/agreement.js";
import type { KnownGrowths, QueryTask } from "./cut-tasks.js";
import { LeftOutRows, type Scanners } from "./left-out-rows.js";
import { countsHeaders, guessOutcome, ScanRoom } from "./scan-room.js";

/** Scans in flight per thread: one runs, one waits, so that no thread idles between two. */
const tasksPerThread = 2;
/** What a stream costs a scan besides its lines, in bytes of lines. */
const streamCost = 256;
export interface QueryRunOptions {
  readonly limits: QueryByteLimits;
  readonly scanners: Scanners;
  /** Threads that scan at the same time. */
  readonly threads: number;
  /** Whose query it is; its cost grows with what it will have to read. */
  readonly share: QueryShare;
  /** What the series of the query may take. */
  readonly budget: Budget;
  readonly growths: KnownGrowths;
}

/** One query while it runs: what its scans report, and what was found out about its sources. */
export class QueryRun {
  readonly limits: QueryByteLimits;
  readonly threads: number;
  readonly budget: Budget;
  readonly growths: KnownGrowths;
  #share: QueryShare;
  readonly #scanners: Scanners;
  readonly #started = performance.now();
  readonly #read: Readonly<Record<Side, ReadStats>> = {
    ingester: emptyReadStats(),
    store: emptyReadStats(),
  };
  readonly #room: ScanRoom;
  readonly #leftOut: LeftOutRows;
  #ingesters = 0;
  #streams = 0;
  #shards = 0;
  #findMs = 0;
  #scanMs = 0;
  /** Scans that run, and since when at least one does. */
  #scanning = 0;
  #scanningSince = 0;

  constructor({ limits, scanners, threads, share, budget, growths }: QueryRunOptions) {
    this.growths = growths;
    this.limits = limits;
    this.threads = threads;
    this.budget = budget;
    this.#room = new ScanRoom(budget, { threads });
    this.#share = share;
    this.#scanners = scanners;
    this.#leftOut = new LeftOutRows({ scanners, threads, share: () => this.#share });
  }

  /** Scans in flight. */
  get lanes(): number {
    return this.threads * tasksPerThread;
  }

  /** Runs a search for sources, and counts its time. */
  async find<T>(search: () => Promise<T>): Promise<T> {
    const started = performance.now();
    try {
      return await search();
    } finally {
      this.#findMs += performance.now() - started;
    }
  }

  /** Counts what was found; the ingester of the process is always asked. */
  see(sources: readonly PlannedSource[], countedSegments = 0): void {
    this.#read.store.sources += countedSegments;
    const { size } = new Set(sources.flatMap(({ ref }) => instanceOf(ref) ?? []));
    this.#ingesters = Math.max(1, this.#ingesters, size);
    for (const { side } of sources) this.#read[side].sources++;
  }

  /** What is to be counted of a leaf without a scan; undefined for one that needs a look at rows. */
  countOf(plan: LeafPlan): LeafCount | undefined {
    if (!countsHeaders(plan)) return undefined;
    return { plan, share: this.#share, counted: [], segments: 0 };
  }

  /** What a scan found, or something that stands for one, when it is counted among what the query read. */
  take<Plan extends ScanPlan>(side: Side, bytes: EncodedOutcome): ScanOutcome<Plan> {
    const outcome = decodeOutcome<Plan>(bytes);
    this.#add(side, outcome);
    return outcome;
  }

  /** What the query costs, in bytes of lines. */
  get cost(): number {
    return this.#share.cost;
  }

  /** Adds to what the query costs. */
  book(bytes: number): void {
    this.#share = { ...this.#share, cost: this.#share.cost + bytes };
  }

  /**
   * Scans the sources of a task, without deleted rows and those that older sources have too, and counts what was read. Throws
   * invalid_argument when all scans have read more than the query may. Undefined where no row is left.
   */
  async scan<Plan extends ScanPlan>(
    task: QueryTask,
    plan: Plan,
    range: TimeRange,
    signal: AbortSignal,
    /** Asked when the scan starts; see `ScanTask.boundNs`. */
    bound: () => Pick<ScanTask, "boundNs"> = () => ({}),
  ): Promise<ScanOutcome<Plan> | undefined> {
    if (this.#scanning++ === 0) this.#scanningSince = performance.now();
    try {
      return await this.#scan(task, plan, { range, signal, bound });
    } finally {
      if (--this.#scanning === 0) this.#scanMs += performance.now() - this.#scanningSince;
    }
  }

  async #scan<Plan extends ScanPlan>(
    task: QueryTask,
    plan: Plan,
    { range, signal, bound }: ScanBounds,
  ): Promise<ScanOutcome<Plan> | undefined> {
    const masked = await this.#masked(task, range, signal);
    const sources = masked.flatMap(({ source, isSpared }) => (isSpared ? [] : [source]));
    if (sources.length === 0) return undefined;
    const scanner: Scanner = this.#scanners[task.side];
    const leave = await this.#room.enter(signal, this.#guess(task, plan));
    let bytes: EncodedOutcome;
    try {
      const options = { signal, share: this.#share };
      bytes = await scanner.run("scan", { plan, sources, ...bound() }, options);
      this.#room.learn(bytes.byteLength);
    } finally {
      leave();
    }
    return this.take(task.side, bytes);
  }

  /** Counts rows and bytes of a task from headers; as `scan` in all else. */
  async volumes(task: QueryTask, plan: VolumePlan, signal: AbortSignal): Promise<VolumeOutcome> {
    const masked = await this.#masked(task, plan, signal);
    const sources = masked.map(({ source }) => source);
    const options = { signal, share: this.#share };
    const scanner: Scanner = this.#scanners[task.side];
    const outcome = decodeVolumes(await scanner.run("volumes", { plan, sources }, options));
    this.#add(task.side, { stats: outcome.stats, streams: 0 });
    return outcome;
  }

  /** What a scan may have to read, from headers. */
  async measure(task: QueryTask, plan: ScanPlan, signal: AbortSignal): Promise<Measured> {
    const sources = await Promise.all(
      task.sources.map(async ({ source, part }) => ({
        ...scanSource(source, part),
        // What one of several places reads, the others do not.
        ...partOf(await this.#leftOut.replicated(source, signal)),
      })),
    );
    const scanner: Scanner = this.#scanners[task.side];
    return scanner.run(
      "measure",
      { plan, sources },
      { signal, share: { ...this.#share, cost: 0 } },
    );
  }

  stats(result?: QueryResult | LogResult): QueryStats {
    const execSeconds = (performance.now() - this.#started) / 1000;
    const [find, scan] = [this.#findMs / 1000, this.#scanMs / 1000];
    return {
      ...this.#read,
      ingestersReached: this.#ingesters,
      streams: this.#streams,
      execSeconds,
      phases: { find, scan, merge: Math.max(0, execSeconds - find - scan) },
      // The frontend knows how long the query waited.
      queueSeconds: 0,
      entriesReturned: result === undefined ? 0 : entriesOf(result),
      shards: this.#shards,
    };
  }

  /** How large the outcome of a first scan may be; what small queries find does not matter, and they do not wait. */
  #guess({ readBytes }: QueryTask, plan: ScanPlan): number {
    return this.#share.cost <= urgentBytes ? 0 : guessOutcome(plan, readBytes);
  }

  #add(side: Side, { stats, streams }: Pick<ScanOutcome, "stats" | "streams">): void {
    addReadStats(this.#read[side], stats);
    // Scans of a query over many streams take long although they read little.
    this.book(Math.max(0, streams - this.#streams) * streamCost);
    this.#streams = Math.max(this.#streams, streams);
    this.#shards++;
    const { maxBytesRead } = this.limits;
    const bytes = bytesOf(this.#read.ingester) + bytesOf(this.#read.store);
    if (maxBytesRead > 0 && bytes > maxBytesRead) throw tooManyBytesRead(bytes, maxBytesRead);
  }

  /** The sources of a task, with the rows of each that older ones have too, and whether these are all. */
  #masked(
    { sources }: QueryTask,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<{ readonly source: ScanSource; readonly isSpared: boolean }[]> {
    return Promise.all(
      sources.map(async ({ source, part }) => {
        const scanned = scanSource(source, part);
        const left = await this.#leftOut.replicated(source, signal);
        const isSpared = left?.isAll === true;
        if (isSpared || isWhole(source))
          return { source: { ...scanned, ...partOf(left) }, isSpared };
        const own = await this.#leftOut.maskOf(source, range, signal);
        const mask = left?.mask === undefined ? own : uniteMasks([own, left.mask]);
        return { source: { ...scanned, ...partOf(left), mask }, isSpared };
      }),
    );
  }
}

interface ScanBounds {
  readonly range: TimeRange;
  readonly signal: AbortSignal;
  readonly bound: () => Pick<ScanTask, "boundNs">;
}

/** True when no row of the source has to be left out. */
function isWhole({ older, meets, deleted }: PlannedSource): boolean {
  return older.length === 0 && meets === undefined && deleted === undefined;
}

/** The rows to leave out, in the form of a scan. */
function partOf(left: LeftOut | undefined): Pick<ScanSource, "mask" | "skipped"> {
  return left === undefined ? {} : { mask: left.mask, skipped: left.skipped };
}

/** A source for a scan that does not mind duplicates. */
function scanSource(
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

/** On whose account a query runs. */
export function shareOf({
  tenants,
  actors = [],
}: Pick<QueryRequest, "tenants" | "actors">): QueryShare {
  return { tenant: tenants.join("|"), actors, cost: 0 };
}
