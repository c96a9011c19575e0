import { callJson } from "./client.js";

export type Level = "critical" | "error" | "warn" | "info" | "debug" | "unknown";

export const levels: readonly Level[] = ["critical", "error", "warn", "info", "debug", "unknown"];

/** A stream of an answer; equal label sets share one object. */
export interface Stream {
  readonly key: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly source: string;
}

/** A line as it came. Times are text of 19 digits, so that they compare as text. */
export interface Line {
  readonly ns: string;
  readonly text: string;
  readonly stream: Stream;
  readonly level: Level;
  readonly metadata: Readonly<Record<string, string>>;
  /** Labels that stages of the query found. */
  readonly parsed: Readonly<Record<string, string>>;
  /** A line of the page itself, such as the mark of a gap in a live view. */
  readonly note?: true;
}

export interface Stats {
  readonly bytes: number;
  readonly lines: number;
  readonly seconds: number;
  /** What Skald says beside the statistics of Loki; undefined where another server answers. */
  readonly skald?: {
    readonly phases: Readonly<Record<string, number>>;
    readonly blocks: Readonly<Record<string, number>>;
    readonly bytesToRead: number;
  };
}

export interface LinesAnswer {
  readonly lines: Line[];
  readonly stats: Stats;
  readonly warnings: readonly string[];
}

export interface LinesQuery {
  readonly query: string;
  readonly startNs: string;
  /** Exclusive. */
  readonly endNs: string;
  readonly limit: number;
  readonly direction: "forward" | "backward";
}

export interface RawStream {
  readonly stream: Record<string, string>;
  readonly values: readonly (readonly [string, string, RawExtra?])[];
}

type RawExtra = {
  readonly structuredMetadata?: Record<string, string>;
  readonly parsed?: Record<string, string>;
};

interface RawStats {
  readonly summary?: {
    readonly totalBytesProcessed?: number;
    readonly totalLinesProcessed?: number;
    readonly execTime?: number;
  };
  readonly skald?: NonNullable<Stats["skald"]>;
}

interface RawAnswer<Result> {
  readonly warnings?: readonly string[];
  readonly data: {
    readonly resultType: string;
    readonly result: Result;
    readonly stats?: RawStats;
  };
}

const categorized = { "x-loki-response-encoding-flags": "categorize-labels" };

/** Lines of a range in the order of the direction. */
export async function fetchLines(query: LinesQuery, signal?: AbortSignal): Promise<LinesAnswer> {
  const { startNs: start, endNs: end, ...rest } = query;
  const answer = await callJson<RawAnswer<RawStream[]>>("loki/api/v1/query_range", {
    params: { ...rest, start, end },
    headers: categorized,
    signal,
  });
  const lines = decodeStreams(answer.data.result);
  const sign = query.direction === "backward" ? -1 : 1;
  lines.sort((a, b) => (a.ns === b.ns ? 0 : a.ns < b.ns ? -sign : sign));
  const warnings = (answer.warnings ?? []).filter((text) => !text.startsWith("the limit of "));
  return { lines, stats: statsOf(answer.data.stats), warnings };
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Seconds and values. */
  readonly points: readonly (readonly [number, number])[];
}

export interface MetricAnswer {
  readonly series: readonly Series[];
  readonly stats: Stats;
  readonly warnings: readonly string[];
}

type RawSeries = {
  readonly metric: Record<string, string>;
  readonly values?: readonly (readonly [number, string])[];
  readonly value?: readonly [number, string];
};

/** A metric query at each step of a range; seconds. */
export async function fetchRange(
  params: { query: string; start: string; end: string; step: number },
  signal?: AbortSignal,
): Promise<MetricAnswer> {
  return metricAnswer("loki/api/v1/query_range", params, signal);
}

/** A metric query at one time. */
export async function fetchInstant(
  params: { query: string; time: string },
  signal?: AbortSignal,
): Promise<MetricAnswer> {
  return metricAnswer("loki/api/v1/query", params, signal);
}

async function metricAnswer(
  path: string,
  params: Record<string, string | number>,
  signal?: AbortSignal,
): Promise<MetricAnswer> {
  const answer = await callJson<RawAnswer<RawSeries[] | [number, string]>>(path, {
    params,
    signal,
  });
  const { result, resultType, stats } = answer.data;
  const list: RawSeries[] =
    resultType === "scalar"
      ? [{ metric: {}, value: result as [number, string] }]
      : (result as RawSeries[]);
  const series = list.map(({ metric, values, value }) => ({
    labels: metric,
    points: (values ?? (value === undefined ? [] : [value])).map(
      ([at, text]) => [at, Number(text.replace("Inf", "Infinity"))] as const,
    ),
  }));
  return { series, stats: statsOf(stats), warnings: answer.warnings ?? [] };
}

function statsOf(raw: RawStats | undefined): Stats {
  const { totalBytesProcessed = 0, totalLinesProcessed = 0, execTime = 0 } = raw?.summary ?? {};
  return {
    bytes: totalBytesProcessed,
    lines: totalLinesProcessed,
    seconds: execTime,
    ...(raw?.skald !== undefined && { skald: raw.skald }),
  };
}

let sourceLabels: readonly string[] = [
  ...["service_name", "service", "app", "application", "name", "app_kubernetes_io_name"],
  ...["container", "container_name", "component", "workload", "job"],
];

/** Sets the labels of which the first that a stream has names where its lines come from. */
export function setSourceLabels(names: readonly string[]): void {
  sourceLabels = ["service_name", ...names];
}

const levelNames: Readonly<Record<string, Level>> = {
  ...{ critical: "critical", fatal: "critical", crit: "critical", emerg: "critical" },
  ...{ alert: "critical", panic: "critical", error: "error", err: "error" },
  ...{ warn: "warn", warning: "warn", info: "info", information: "info", notice: "info" },
  ...{ debug: "debug", trace: "debug" },
};

/** The level that a word names. */
export function levelOf(word: string | undefined): Level {
  return (word !== undefined && levelNames[word.toLowerCase()]) || "unknown";
}

const noLabels: Readonly<Record<string, string>> = {};

/** The lines of streams as the API sends them, stream after stream. */
export function decodeStreams(streams: readonly RawStream[]): Line[] {
  const lines: Line[] = [];
  for (const { stream: labels, values } of streams) {
    const stream = streamOf(labels);
    for (const [ns, text, extra] of values) {
      const metadata = extra?.structuredMetadata ?? noLabels;
      const parsed = extra?.parsed ?? noLabels;
      const word = metadata.detected_level ?? labels.detected_level ?? labels.level;
      lines.push({ ns, text, stream, metadata, parsed, level: levelOf(word ?? parsed.level) });
    }
  }
  return lines;
}

const streams = new Map<string, Stream>();
const streamsMax = 20_000;

export function streamOf(labels: Record<string, string>): Stream {
  const names = Object.keys(labels).sort();
  const key = JSON.stringify(names.map((name) => [name, labels[name]]));
  const known = streams.get(key);
  if (known !== undefined) return known;
  const sourceName = sourceLabels.find((name) => labels[name] !== undefined);
  const source = sourceName === undefined ? "" : (labels[sourceName] ?? "");
  const stream = { key, labels, source };
  if (streams.size >= streamsMax) streams.clear();
  streams.set(key, stream);
  return stream;
}
