import type { LogResult, Plan, QueryResult } from "@skald/logql";
import {
  defaultQueryLimits,
  groupLogRows,
  parseQuery,
  planQuery,
  type QueryParams,
} from "@skald/logql";
import { formatLabels, type Ingester, type SegmentRef, type SourceRef } from "@skald/model";
import {
  collectStreams,
  findDuplicates,
  measureScan,
  type OpenSource,
  openHead,
  openSegmentFile,
  type Scanner,
  type Source,
  scanLog,
  scanMetric,
  segmentSource,
  uniteExclusions,
} from "@skald/storage";
import { makeSegment, row, type SourceRow, testDayNs } from "@skald/storage/fixture";
import type { SegmentCatalog } from "../find/source-finder.js";
import { Querier, type QueryAnswer, type QueryRequest } from "../querier.js";

export const noLimits = { maxBytesRead: 0, maxResultBytes: 256 * 1024 * 1024 };
export const never: AbortSignal = new AbortController().signal;

/** Runs scans in this thread, each in a turn of its own, and writes down what it was asked. */
export class LocalScanner implements Scanner {
  readonly width: number;
  readonly jobs: string[] = [];
  /** Called before each job; may throw. */
  onJob: (name: string) => void = () => {};
  readonly #opened = new Map<string, { source: Source; close: () => void }>();

  constructor(width = 2) {
    this.width = width;
  }

  scanMetric: Scanner["scanMetric"] = (task, signal) =>
    this.#run(
      "scan_metric",
      task.sources.map(({ ref }) => ref),
      signal,
      (check) => scanMetric(task, this.#open, { check }),
    );

  scanLog: Scanner["scanLog"] = (task, signal) =>
    this.#run(
      "scan_log",
      task.sources.map(({ ref }) => ref),
      signal,
      (check) => scanLog(task, this.#open, { check }),
    );

  measure: Scanner["measure"] = (task, signal) =>
    this.#run(
      "measure",
      task.sources.map(({ ref }) => ref),
      signal,
      (check) => measureScan(task, this.#open, { check }),
    );

  streams: Scanner["streams"] = (task, signal) =>
    this.#run("streams", task.sources, signal, (check) => {
      const found = new Set<string>();
      for (const ref of task.sources) collectStreams(ref, this.#open(ref), task, found, check);
      return [...found];
    });

  duplicates: Scanner["duplicates"] = ({ newer, older, span }, signal) =>
    this.#run("duplicates", [newer, ...older], signal, (check) =>
      uniteExclusions(
        older.map((ref) => findDuplicates(this.#open(ref), this.#open(newer), { check, span })),
      ),
    );

  close(): void {
    for (const { close } of this.#opened.values()) close();
  }

  /** A structured clone of what goes in and out is what threads would get. */
  async #run<T>(
    name: string,
    refs: readonly SourceRef[],
    signal: AbortSignal,
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

/** An ingester and a store with given sources. */
export function querierOf(
  scans: Scanner,
  sources: { readonly ingester?: readonly SourceRef[]; readonly store?: readonly SourceRef[] },
  onList: (fresh: boolean) => void = () => {},
): Querier {
  const within =
    (refs: readonly SourceRef[] = []) =>
    (request: { tenant: string; fromNs: bigint; toNs: bigint }) =>
      refs.filter(
        ({ tenant, minNs, maxNs }) =>
          tenant === request.tenant && minNs <= request.toNs && maxNs >= request.fromNs,
      );
  const unused = () => Promise.reject(new Error("not for queries"));
  const held = within(sources.ingester);
  const stored = within(sources.store);
  const ingester: Ingester = {
    push: unused,
    flush: unused,
    select: async (request) => ({ sources: held(request) }),
  };
  const catalog: SegmentCatalog = {
    list: async (request) => {
      onList(request.fresh === true);
      return stored(request);
    },
  };
  return new Querier({ ingester, catalog, scans });
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
