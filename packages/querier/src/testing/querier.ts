import {
  type CallOptions,
  type Catalog,
  type CatalogRequest,
  type DigestTask,
  type DuplicateTask,
  type EncodedOutcome,
  type EncodedStreams,
  encodeOutcome,
  encodeStreams,
  encodeTexts,
  encodeVolumes,
  type HeadRef,
  type HeldRows,
  type Ingester,
  type LabelTask,
  type MatchTask,
  type QueryAnswer,
  type QueryRequest,
  type RowHashTask,
  type ScanPlan,
  type ScanTask,
  type SegmentScanner,
  type SharedTask,
  type StreamTask,
  type VolumeTask,
} from "@skald/contracts";
import {
  defaultQueryLimits,
  groupLogRows,
  type LeafPlan,
  type LogPlan,
  type LogResult,
  type Plan,
  parseQuery,
  planQuery,
  type QueryParams,
  type QueryResult,
} from "@skald/logql";
import { dayNs, formatLabels, type SegmentRef, steadyClock, type TimeRange } from "@skald/model";
import {
  BlockDigestCache,
  CountingCatalog,
  countDay,
  digestSources,
  findDuplicates,
  findShared,
  measureScan,
  type OpenSource,
  openHead,
  placeHashes,
  type Source,
  scanLabels,
  scanLog,
  scanMatches,
  scanMetric,
  scanStreams,
  scanVolumes,
  segmentSource,
  uniteMasks,
} from "@skald/scan";
import { makeSegment, row, type SourceRow, testDayNs } from "@skald/scan/testing";
import {
  DayIndex,
  type DayView,
  dayView,
  editDay,
  type HeadView,
  type LocalRef,
  openSegmentFile,
  segmentKey,
} from "@skald/storage";
import { CorruptSegments } from "../find/corrupt-segments.js";
import { Querier, type QuerierDeps } from "../querier.js";
import { ReplicatedIngester } from "../replicas/replicated-ingester.js";

export const noLimits = { maxBytesRead: 0, maxMemoryBytes: 256 * 1024 * 1024 };
export const never: CallOptions = { signal: new AbortController().signal };

/** Runs scans in this thread, each in a turn of its own, and writes down what it was asked. */
export class LocalScanner implements SegmentScanner<LocalRef> {
  readonly threads: number;
  readonly jobs: string[] = [];
  /** Called before each job; may throw. */
  onJob: (name: string) => void = () => {};
  readonly #opened = new Map<string, { source: Source; close: () => void }>();

  constructor(threads = 2) {
    this.threads = threads;
  }

  scan(task: ScanTask<ScanPlan, LocalRef>, options: CallOptions): Promise<EncodedOutcome> {
    const refs = task.sources.map(({ ref }) => ref);
    const run = (check: () => void) =>
      encodeOutcome(
        "log" in task.plan
          ? scanLog(task as ScanTask<LogPlan, LocalRef>, this.#open, { check })
          : scanMetric(task as ScanTask<LeafPlan, LocalRef>, this.#open, { check }),
      );
    const name = "log" in task.plan ? "scan_log" : "scan_metric";
    return this.#run(name, refs, options, run);
  }

  measure(task: ScanTask<ScanPlan, LocalRef>, options: CallOptions): Promise<number> {
    const refs = task.sources.map(({ ref }) => ref);
    return this.#run("measure", refs, options, (check) => measureScan(task, this.#open, { check }));
  }

  volumes(task: VolumeTask<LocalRef>, options: CallOptions): Promise<EncodedOutcome> {
    const refs = task.sources.map(({ ref }) => ref);
    return this.#run("volumes", refs, options, (check) =>
      encodeVolumes(scanVolumes(task, this.#open, { check })),
    );
  }

  streams(task: StreamTask<LocalRef>, options: CallOptions): Promise<EncodedStreams> {
    return this.#run("streams", task.sources, options, (check) =>
      encodeStreams(scanStreams(task, this.#open, check)),
    );
  }

  labels(task: LabelTask<LocalRef>, options: CallOptions): Promise<EncodedStreams> {
    return this.#run("labels", task.sources, options, (check) =>
      encodeTexts(scanLabels(task, this.#open, check)),
    );
  }

  duplicates({ newer, older, range }: DuplicateTask<LocalRef>, options: CallOptions) {
    return this.#run("duplicates", [newer, ...older], options, (check) =>
      uniteMasks(
        older.map((ref) => findDuplicates(this.#open(ref), this.#open(newer), { check, range })),
      ),
    );
  }

  sharedRows({ sources, ...wanted }: SharedTask<LocalRef>, options: CallOptions) {
    return this.#run("sharedRows", sources, options, (check) =>
      findShared(sources.map(this.#open), { check, ...wanted }),
    );
  }

  matches(task: MatchTask<LocalRef>, options: CallOptions) {
    return this.#run("matches", [task.source], options, (check) => {
      const { masks, rowCount } = scanMatches(task, this.#open, { check });
      return { mask: uniteMasks(masks), rowCount };
    });
  }

  digests(task: DigestTask<LocalRef>, options: CallOptions) {
    return this.#run("digests", task.sources, options, (check) =>
      digestSources(task, this.#open, { check }, new BlockDigestCache()),
    );
  }

  rowHashes(task: RowHashTask<LocalRef>, options: CallOptions) {
    return this.#run("row_hashes", task.sources, options, (check) =>
      placeHashes(task, this.#open, { check }),
    );
  }

  close(): void {
    for (const { close } of this.#opened.values()) close();
  }

  /** A structured clone of what goes in and out is what threads would get. */
  async #run<T>(
    name: string,
    refs: readonly LocalRef[],
    { signal }: CallOptions,
    work: (check: () => void) => T,
  ): Promise<T> {
    this.jobs.push(`${name} ${refs.map(({ id }) => id).join()}`);
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    this.onJob(name);
    return structuredClone(work(() => signal.throwIfAborted()));
  }

  readonly #open: OpenSource = (ref) => {
    if (ref.kind === "head") return openHead(ref);
    const known = this.#opened.get(ref.id);
    if (known !== undefined) return known.source;
    const { segment, close } = openSegmentFile(ref);
    const source = segmentSource(segment);
    this.#opened.set(ref.id, { source, close });
    return source;
  };
}

/** Views of the ingester of `querierOf` that were selected and not released. */
export const openViews = new Set<string>();

function within<Ref extends LocalRef>(refs: readonly Ref[] = []) {
  return (request: TimeRange & { readonly tenant: string }) =>
    refs.filter(
      ({ tenant, minNs, maxNs }) =>
        tenant === request.tenant && minNs < request.toNs && maxNs >= request.fromNs,
    );
}

/** What each of several ingesters holds; `fail` throws where one is lost. */
export interface HeldReplica {
  readonly sources: readonly LocalRef[];
  readonly fail?: (call: string) => void;
}

export interface Replicas {
  readonly replicas: readonly HeldReplica[];
  readonly store: SegmentRef[];
  /** Told of each call that was answered. */
  readonly onCall?: (name: string, message: unknown, options: unknown, answer: unknown) => void;
}

/** Three ingesters, of which one may be lost, and a store. */
export function replicatedQuerierOf(
  scanner: LocalScanner,
  { replicas, store, onCall = () => {} }: Replicas,
): Querier {
  const instances = replicas.map(({ sources, fail = () => {} }, i) => ({
    id: `i${i}`,
    zone: "",
    ingester: watched(ingesterOf(scanner, within(sources)), fail, onCall),
  }));
  const stored = within(store);
  return new Querier({
    ingester: new ReplicatedIngester({
      replicasOf: () => ({ instances, maxMissing: 1, byZone: false }),
      connect: ({ ingester }) => ingester,
      queryWithinMs: 0,
      clock: { elapsedMs: () => 0 },
      sleep: () => new Promise(() => {}),
    }),
    catalog: { list: async (request) => stored(request) },
    scanner,
    threads: scanner.threads,
    corrupt: new CorruptSegments({ clock: steadyClock, onFound: () => undefined }),
  });
}

function watched(
  ingester: Ingester,
  fail: (call: string) => void,
  onCall: NonNullable<Replicas["onCall"]>,
): HeldRows {
  return new Proxy(ingester, {
    get: (target, name: keyof Ingester) => async (message: never, options: never) => {
      fail(name);
      const call = target[name] as (...args: never[]) => Promise<unknown>;
      const answer = await call(message, options);
      onCall(name, message, options, answer);
      return answer;
    },
  });
}

/** An ingester and a store with given sources. */
export function querierOf(
  scanner: LocalScanner,
  sources: { readonly ingester?: readonly LocalRef[]; readonly store?: readonly SegmentRef[] },
  onList: (fresh: boolean) => void = () => {},
  {
    indexed = false,
    ...deps
  }: Pick<QuerierDeps, "deletes" | "maxCost" | "maxHeldBytes" | "memory"> & {
    /** Whether the store has an index of most of its segments. */
    readonly indexed?: boolean;
  } = {},
): Querier {
  const stored = within(sources.store);
  const list = async (request: CatalogRequest) => {
    onList(request.maxAgeMs === 0);
    return stored(request);
  };
  const catalog: Catalog = indexed
    ? new CountingCatalog({
        catalog: { list, days: async (request) => indexedDays(await list(request)) },
        countDay: async (task) => countDay(task, new DayIndex(task.image), { check: () => {} }),
      })
    : { list };
  return new Querier({
    ingester: ingesterOf(scanner, within(sources.ingester)),
    catalog,
    scanner,
    threads: scanner.threads,
    corrupt: new CorruptSegments({ clock: steadyClock, onFound: () => undefined }),
    ...deps,
  });
}

/** Every third segment is younger than the index of its day. */
function indexedDays(refs: readonly SegmentRef[]): DayView[] {
  const days = new Map<bigint, SegmentRef[]>();
  for (const ref of refs) {
    const baseNs = ref.minNs - (ref.minNs % dayNs);
    days.set(baseNs, [...(days.get(baseNs) ?? []), ref]);
  }
  return [...days].map(([baseNs, held]) => {
    const byKey = new Map(held.map((ref) => [segmentKey(ref), ref]));
    const add = held.filter((_, i) => i % 3 < 2).map((ref) => ({ ref, level: 0 }));
    const { image } = editDay({
      ...{ tenant: held[0]!.tenant, baseNs, base: undefined, add, remove: [], forget: [] },
      ...{ generation: 1, writtenMs: 1 },
    });
    const objects = [...byKey].map(([key, { sizeBytes }]) => ({ key, sizeBytes, modifiedMs: 0 }));
    return dayView(objects, new DayIndex(image), (key) => byKey.get(key)!.location);
  });
}

let views = 0;

/** An ingester as seen from another process: its heads are known by name only. */
function ingesterOf(
  scanner: LocalScanner,
  held: (request: TimeRange & { readonly tenant: string }) => LocalRef[],
): Ingester {
  const unused = () => Promise.reject(new Error("not for queries"));
  const heads = new Map<string, HeadView>();
  const local = (ref: SegmentRef | HeadRef): LocalRef => {
    if (ref.kind === "segment") return ref;
    if (!openViews.has(ref.view)) throw new Error(`the view ${ref.view} was released`);
    return heads.get(ref.id) as HeadView;
  };
  const localTask = (task: ScanTask): ScanTask<ScanPlan, LocalRef> => ({
    ...task,
    sources: task.sources.map((source) => ({ ...source, ref: local(source.ref) })),
  });
  return {
    push: unused,
    flush: unused,
    select: async (request) => {
      const view = `v${views++}`;
      openViews.add(view);
      const sources = held(request).map((ref) => {
        if (ref.kind === "segment") return ref;
        heads.set(ref.id, ref);
        const { kind, id, tenant, minNs, maxNs, blocks } = ref;
        const sizeBytes = blocks.reduce((sum, { memory }) => sum + memory.byteLength, 0);
        return { kind, id, tenant, minNs, maxNs, view, sizeBytes };
      });
      return { view, sources };
    },
    changes: async ({ spans }) => ({
      spans: spans.map((span) => ({ token: "", changed: [span] })),
    }),
    release: async (view) => {
      openViews.delete(view);
    },
    scan: async (task, options) => scanner.scan(localTask(task), options),
    measure: async (task, options) => scanner.measure(localTask(task), options),
    streams: async (task, options) =>
      scanner.streams({ ...task, sources: task.sources.map(local) }, options),
    labels: async (task, options) =>
      scanner.labels({ ...task, sources: task.sources.map(local) }, options),
    volumes: async (task, options) => {
      const sources = task.sources.map((source) => ({ ...source, ref: local(source.ref) }));
      return scanner.volumes({ ...task, sources }, options);
    },
    duplicates: async ({ newer, older, ...rest }, options) =>
      scanner.duplicates({ newer: local(newer), older: older.map(local), ...rest }, options),
    matches: async ({ source, ...rest }, options) =>
      scanner.matches({ source: local(source), ...rest }, options),
    digests: async (task, options) =>
      scanner.digests({ ...task, sources: task.sources.map(local) }, options),
    rowHashes: async (task, options) =>
      scanner.rowHashes({ ...task, sources: task.sources.map(local) }, options),
  };
}

/** A plan over times that are ns after midnight of the test day; the end of a log query is exclusive. */
export function planOf(
  query: string,
  params: Partial<Omit<QueryParams, "startNs" | "endNs">> & { from?: number; to?: number } = {},
): Plan {
  const { from = 0, to = 1e9, ...rest } = params;
  return planQuery(
    parseQuery(query),
    {
      startNs: testDayNs + BigInt(from),
      endNs: testDayNs + BigInt(to),
      stepNs: 0n,
      limit: 1000,
      direction: "forward",
      intervalNs: 0n,
      ...rest,
    },
    { ...defaultQueryLimits, maxSeries: 1e6 },
  );
}

export function request(
  query: string,
  more: Partial<QueryRequest> = {},
  params: Parameters<typeof planOf>[1] = {},
): QueryRequest {
  return { tenants: ["t"], limits: noLimits, plan: planOf(query, params), ...more };
}

/** Ten rows of a stream, one each ms from a time (ms) on; their lines are `<app><ms>`. */
export function tenRows(app: string, from: number): SourceRow[] {
  return Array.from({ length: 10 }, (_, i) => row(app, (from + i) * 1e6, `${app}${from + i}`));
}

/** Segments s0, s10 .. s50 of stream a, one after the other. */
export function sampleSegments(directory: string): [SegmentRef, ...SegmentRef[]] {
  const refs = [0, 10, 20, 30, 40, 50].map((from) =>
    makeSegment(directory, tenRows("a", from), { id: `s${from}` }),
  );
  return refs as [SegmentRef, ...SegmentRef[]];
}

/** An answer as plain values that can be compared: rows in order, or values by series. */
export function plain({ result }: QueryAnswer): unknown {
  return result.kind === "streams" ? plainRows(result) : plainSeries(result);
}

function plainRows(result: LogResult): string[] {
  const texts = new Array<string>(result.rowCount);
  const { bytes, offsets } = result.lines;
  for (const { labels, rows } of groupLogRows(result, "all")) {
    for (const at of rows) {
      const line = Buffer.from(bytes.subarray(offsets[at], offsets[at + 1])).toString();
      const time = (result.timestamps[at] as bigint) - testDayNs;
      texts[at] = `${time} ${formatLabels(labels)} ${line}`;
    }
  }
  return texts;
}

function plainSeries(result: QueryResult): unknown {
  switch (result.kind) {
    case "scalar":
      return result.value;
    case "vector":
      return result.samples.map(({ labels, value }) => `${formatLabels(labels)} ${value}`).sort();
    case "matrix":
      return result.series.map(
        ({ labels, at, values }) =>
          `${formatLabels(labels)} ${[...at].join()} ${[...values].join()}`,
      );
  }
}
