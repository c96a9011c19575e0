import type { ScanPlan, ScanSource, SourceRef } from "@skald/contracts";
import type { ReadStats, TimeRange } from "@skald/model";
import { instanceOf, type PlannedSource } from "../find/order-sources.js";

/** Raw bytes of lines for each byte of an index, roughly. */
export const indexShare = 512;
/** A piece of work for one thread: some small sources, or a part of a large one. All are in one place. */
export interface QueryTask {
  readonly side: PlannedSource["side"];
  readonly sources: readonly TaskSource[];
  /** Raw bytes of these, roughly. */
  readonly bytes: number;
  /** Those of them that it will read, as far as tasks have told. */
  readonly readBytes: number;
}

type CutTask = Omit<QueryTask, "readBytes">;

export interface TaskSource {
  readonly source: PlannedSource;
  readonly part?: NonNullable<ScanSource["part"]>;
}

/** Raw bytes that a task reads by default: enough that sending it costs next to nothing, little enough that threads share evenly. */
const readPerTask = 16 * 1024 * 1024;
/** Sources below this are put together whatever the threads have to do. */
const minBytes = 64 * 1024;
/** Tasks for each thread that a small query is cut into. */
const tasksPerThread = 4;
/** Tasks for each thread that large ones leave enough for. */
const leftPerThread = 2;
const maxSources = 64;
/** A task is at most this many times as large as one that reads everything: asking filters and headers takes time too. */
const maxGrowth = 256;
/** The least growth of a task, as a share of the growth that it may have: sending smaller ones takes longer than they run. */
const minGrowth = 1 / 4;
/** Bytes of lines of a segment whose headers take as long to look at as one to be read. */
const headerShare = 1 / 32;
/** Raw bytes per stored byte of a segment, roughly: repetitive lines take much less. */
const compression = 5;
/** What a row costs besides its line, in bytes of lines. */
const rowCost = 64;
/** The same of a row that is counted by what earlier scans found, and of a stored byte that is read without lines. */
const foundCost = 8;
const columnCost = 32;

export interface CutOptions {
  /** Off: a source is in one task only. */
  readonly split: boolean;
  /** Threads that all shall have something to do. */
  readonly threads: number;
  /** Raw bytes that a task shall read. */
  readonly taskBytes?: number;
  /** Headers say all that is asked, most often at least. */
  readonly onlyHeaders?: boolean;
  /** Rows are counted, which takes next to nothing where earlier scans found out about them. */
  readonly onlyCounts?: boolean;
  /** The `growth` of an earlier query that reads the same, to begin with. */
  readonly growth?: number | undefined;
}

/**
 * Cuts sources, in their order, into tasks, each when it is asked for: where tasks turned out to read little of their
 * sources, because few streams are wanted or headers say enough, the next are larger.
 */
export class TaskCutter {
  readonly sources: readonly PlannedSource[];
  readonly #options: Required<Omit<CutOptions, "growth">>;
  #at = 0;
  /** Share of the source at hand that tasks have already. */
  #from = 0;
  /** Bytes of the smallest task. The rest of a source, or of the last one, may be smaller. */
  readonly #least: number;
  #left: number;
  #given = 0;
  #read = 0;
  readonly #known: number | undefined;

  constructor(sources: readonly PlannedSource[], { growth, ...options }: CutOptions) {
    this.sources = sources;
    this.#known = growth;
    this.#options = { taskBytes: readPerTask, onlyHeaders: false, onlyCounts: false, ...options };
    this.#left = sources.reduce((sum, { ref }) => sum + this.#sizeOf(ref), 0);
    const fair = this.#left / (options.threads * tasksPerThread);
    // Headers are looked at in less time than it takes to hand many tasks over.
    this.#least = this.#options.onlyHeaders
      ? this.#options.taskBytes
      : Math.max(minBytes, Math.min(this.#options.taskBytes, fair));
  }

  /** The source that the next task begins with. */
  peek(): PlannedSource | undefined {
    return this.sources[this.#at];
  }

  next(): QueryTask | undefined {
    const first = this.peek();
    if (first === undefined) return undefined;
    const share = this.#share();
    const size = this.#sizeOf(first.ref) * (1 - this.#from);
    // What one thread reads in no time is not worth cutting.
    const whole = this.#options.split ? Math.max(share, this.#options.taskBytes) : size;
    const parts = Math.max(1, Math.round(size / whole));
    const task = parts > 1 ? this.#part(first, parts) : this.#some(first, share);
    this.#left -= task.bytes;
    return { ...task, readBytes: task.bytes / Math.max(1, this.growth ?? 1) };
  }

  /**
   * Tells what a task read. The index of a source, which could tell it before, is open only where the source is scanned. All parts of a
   * source read the same share of it.
   */
  learn({ bytes }: QueryTask, stats: ReadStats): void {
    this.#given += bytes;
    const { headBytes, headLines, decompressedBytes, decompressedLines, compressedBytes } = stats;
    const rows = decompressedLines * rowCost;
    const found = decompressedLines * foundCost + compressedBytes * columnCost;
    this.#read += headBytes + decompressedBytes + headLines * rowCost;
    this.#read += this.#options.onlyCounts ? Math.min(rows, found) : rows;
  }

  /** The next tasks, each cut when it is asked for. */
  *take(count = Number.POSITIVE_INFINITY): Generator<QueryTask> {
    for (let i = 0; i < count; i++) {
      const task = this.next();
      if (task === undefined) return;
      yield task;
    }
  }

  /** How many times as much a task may be as one that reads everything, as far as tasks have told. */
  get growth(): number | undefined {
    // A source that is read as far as to a limit says nothing of the next.
    const { split, onlyHeaders } = this.#options;
    if (!split || onlyHeaders) return undefined;
    return this.#given === 0 ? this.#known : Math.min(maxGrowth, this.#given / (this.#read + 1));
  }

  /** Bytes of the next task. */
  #share(): number {
    const { growth } = this;
    if (growth === undefined) return this.#least;
    const fair = this.#left / (this.#options.threads * leftPerThread);
    const least = this.#least * Math.max(1, growth * minGrowth);
    return Math.max(least, Math.min(this.#options.taskBytes * growth, fair));
  }

  /** The next of several equal parts of what is left of a source. */
  #part(source: PlannedSource, parts: number): CutTask {
    const from = this.#from;
    const to = from + (1 - from) / parts;
    this.#from = to;
    const bytes = this.#sizeOf(source.ref) * (to - from);
    return { side: source.side, sources: [{ source, part: { from, to } }], bytes };
  }

  /** What is left of the first source, and others of its place, as many as are a share together. */
  #some(first: PlannedSource, share: number): CutTask {
    const { side } = first;
    const isNear = (source: PlannedSource | undefined): source is PlannedSource =>
      source?.side === side && instanceOf(source.ref) === instanceOf(first.ref);
    const sources: TaskSource[] = [];
    let bytes = 0;
    for (let source = this.peek(); isNear(source); source = this.peek()) {
      const from = this.#from;
      const size = this.#sizeOf(source.ref) * (1 - from);
      const isFull = sources.length === maxSources || bytes + size > share;
      if (sources.length > 0 && isFull) break;
      sources.push(from === 0 ? { source } : { source, part: { from, to: 1 } });
      bytes += size;
      this.#leave();
    }
    return { side, sources, bytes };
  }

  /** A head has its runs in the order in which they came, so that there is more of them. */
  #sizeOf(ref: SourceRef): number {
    const isLittle = this.#options.onlyHeaders && ref.kind === "segment";
    return rawBytes(ref) * (isLittle ? headerShare : 1);
  }

  #leave(): void {
    this.#at++;
    this.#from = 0;
  }
}

const maxNoted = 1000;
/** Characters of a plan that is remembered. */
const maxKeyLength = 2000;

/** How little the scans of a plan read. */
interface KnownGrowth {
  /** Of all runs. */
  readonly least: number;
  /** Of the last run, with its range and the largest of its segments. */
  readonly last: number;
  readonly range: TimeRange;
  readonly largest: string | undefined;
}

/** A run may have this share of its range for itself to be taken for a repetition. */
const maxFresh = 1 / 4;
/** How many times the least the growth of the last run counts: what scans found may be forgotten, and then a task runs that much longer. */
const maxTrust = 8;

/** Remembers how little scans of a plan read of their sources, for all queriers of a thread: panels ask the same again and again. */
export class KnownGrowths {
  readonly #growths = new Map<string, KnownGrowth>();

  /**
   * The growth of the last run, if this is nearly the same query of metrics: then scans know what that one found. Else the least: what a
   * scan need not read when it runs again it reads in another range, or after a merge. A log query reads the lines that it finds anyway.
   */
  of(plan: ScanPlan, sources: readonly PlannedSource[]): number | undefined {
    const known = this.#growths.get(keyOf(plan));
    if (known === undefined) return undefined;
    const { last, least, range, largest } = known;
    if ("log" in plan || freshShare(plan, range) > maxFresh) return least;
    return largest === largestOf(sources) ? Math.min(last, least * maxTrust) : least;
  }

  note(plan: ScanPlan, sources: readonly PlannedSource[], growth: number | undefined): void {
    const key = keyOf(plan);
    if (growth === undefined || key.length > maxKeyLength) return;
    const least = Math.min(this.#growths.get(key)?.least ?? growth, growth);
    this.#growths.delete(key);
    const [oldest] = this.#growths.keys();
    if (this.#growths.size >= maxNoted && oldest !== undefined) this.#growths.delete(oldest);
    const range = { fromNs: plan.fromNs, toNs: plan.toNs };
    this.#growths.set(key, { least, last: growth, range, largest: largestOf(sources) });
  }
}

/** The share of a range that is not in another. */
function freshShare({ fromNs, toNs }: TimeRange, other: TimeRange): number {
  const from = fromNs > other.fromNs ? fromNs : other.fromNs;
  const to = toNs < other.toNs ? toNs : other.toNs;
  return 1 - Math.max(0, Number(to - from)) / Math.max(1, Number(toNs - fromNs));
}

/** The id of the largest segment. */
function largestOf(sources: readonly PlannedSource[]): string | undefined {
  let largest: PlannedSource["ref"] | undefined;
  for (const { ref } of sources)
    if (ref.kind === "segment" && ref.sizeBytes > (largest?.sizeBytes ?? -1)) largest = ref;
  return largest?.id;
}

/** Which rows of which streams a scan looks for, whenever they are from. */
function keyOf(plan: ScanPlan): string {
  const { matchers, stages } = "log" in plan ? plan.log : plan;
  const { unwrap, grouping } = "log" in plan ? {} : plan;
  return JSON.stringify([matchers, stages, unwrap, grouping], (_, value: unknown) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
}

/** Raw bytes of lines of a source, roughly. */
export function rawBytes({ kind, sizeBytes }: SourceRef): number {
  return kind === "segment" ? sizeBytes * compression : sizeBytes;
}

/** Raw bytes of the part of sources that lies in a range, roughly: a source is taken to be even over its time. */
export function estimateBytes(sources: readonly PlannedSource[], range: TimeRange): number {
  return sources.reduce((sum, { ref }) => sum + rawBytes(ref) * shareWithin(ref, range), 0);
}

function shareWithin({ minNs, maxNs }: SourceRef, { fromNs, toNs }: TimeRange): number {
  const from = minNs > fromNs ? minNs : fromNs;
  const to = maxNs < toNs ? maxNs : toNs - 1n;
  return Math.max(0, Number(to - from + 1n) / Number(maxNs - minNs + 1n));
}
