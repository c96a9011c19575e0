import { encodeLogRows, type InstantAnswer, type QueryAnswer } from "@skald/contracts";
import {
  compilePipeline,
  type Expr,
  formatQuery,
  isLight as isLightExpr,
  type LogResult,
  parseQuery,
  parseSelector,
  type QueryResult,
} from "@skald/logql";
import {
  formatGoDuration,
  invalidArgument,
  nsPerSecond,
  parseSize,
  SkaldError,
  type TimeRange,
} from "@skald/model";
import { type HttpResponse, jsonResponse, jsonTextResponse } from "@skald/transport/routes";
import {
  encodeFields,
  encodeLegacyStreams,
  encodeList,
  encodeQueryResult,
  encodeSeries,
  encodeVolume,
  wantsCategories,
} from "../encode/json.js";
import { encodeParquet, parquetType } from "../encode/parquet.js";
import { detectFields } from "../explore/detected-fields.js";
import { detectLabels } from "../explore/detected-labels.js";
import { explainQuery } from "../explore/explain.js";
import { largestSeries, parseVolumeParams } from "../explore/volume.js";
import type { ExplainedPlan, Frontend, PlannedQuery } from "../frontend.js";
import {
  type IndexStats,
  type StreamSelection,
  selectorsOf,
  seriesSelectors,
  tenantLabel,
} from "../lists.js";
import {
  parseBounds,
  parseFilteredQuery,
  parseInstantParams,
  parseLimit,
  parseOrderedBounds,
  parseRangeParams,
  parseStep,
  parseTailParams,
  type TailParams,
} from "../params/params.js";
import type { Asker, QueryContext } from "../query-context.js";

/** What endpoints read of a request. */
export interface EndpointRequest {
  readonly params: URLSearchParams;
  /** Variables of the path. */
  readonly variables: Readonly<Record<string, string>>;
  /** Those that say in which form to answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What an endpoint answers: a client, or with a value a part of this process. */
export type EndpointAnswer = HttpResponse | { readonly value: unknown };

/**
 * An endpoint in two steps. `plan` parses and checks, and returns plain data, so that `answer` may run on another thread. `known` is the expression of the request if it was parsed and checked before.
 */
export interface Endpoint<Planned> {
  plan(request: EndpointRequest, asker: Asker, known?: Expr): Planned;
  /** Whether the answer takes next to no work besides its scans; false if not given. */
  isLight?(planned: Planned): boolean;
  answer(
    planned: Planned,
    request: EndpointRequest,
    context: QueryContext,
  ): Promise<EndpointAnswer> | EndpointAnswer;
}

export interface EndpointOptions {
  /** Answer in Parquet to clients that accept only that; else the header is not looked at. */
  readonly parquetAnswers: boolean;
}

export type QueryEndpoint = keyof ReturnType<typeof queryEndpoints>;

const labelsSinceNs = 6n * 3600n * nsPerSecond;
const seriesSinceNs = 3600n * nsPerSecond;
const defaultFieldLimit = 1000;
const defaultShardBytes = 600 * 1024 * 1024;
const maxShards = 1024;
const minPatternStepSeconds = 10;

/** The endpoints of the query API, and those that other parts of the process ask. */
export function queryEndpoints(frontend: Frontend, options: EndpointOptions) {
  return {
    ...rowEndpoints(frontend, options),
    ...listEndpoints(frontend),
    ...exploreEndpoints(frontend),
    explain: endpoint({
      isLight: () => true,
      plan: ({ params }, asker): ExplainedPlan =>
        frontend.planExplain(parseRangeParams(params, frontend.nowNs()), asker),
      answer: async (planned, _, context) =>
        jsonResponse(200, await explainQuery(planned, frontend.lists, context)),
    }),
    format_query: endpoint({
      plan: () => undefined,
      answer: (_, { params }) => formatAnswer(params.get("query") ?? ""),
    }),
  };
}

function endpoint<Planned>(one: Endpoint<Planned>): Endpoint<Planned> {
  return one;
}

/** Endpoints that run a query. */
function rowEndpoints(frontend: Frontend, { parquetAnswers }: EndpointOptions) {
  const planRange = ({ params }: EndpointRequest, asker: Asker, known?: Expr) =>
    frontend.planRange(parseRangeParams(params, frontend.nowNs()), asker, known);
  const planInstant = ({ params }: EndpointRequest, asker: Asker, known?: Expr) =>
    frontend.planInstant(parseInstantParams(params, frontend.nowNs()), asker, known);
  const answer = async (
    planned: PlannedQuery,
    { headers }: EndpointRequest,
    context: QueryContext,
  ): Promise<HttpResponse> => {
    const { result, stats } = await frontend.run(planned, context);
    if (parquetAnswers && headers.accept === parquetType) {
      return { status: 200, headers: { "content-type": parquetType }, body: encodeParquet(result) };
    }
    const categorize = wantsCategories({ headers });
    const warnings = [...result.warnings, ...cutWarnings(planned, result)];
    const told = { ...result, warnings };
    const started = performance.now();
    const encodeSeconds = () => (performance.now() - started) / 1000;
    const body = encodeQueryResult(told, stats, { categorize, encodeSeconds });
    return jsonTextResponse(200, body);
  };
  const isLight = ({ expr }: PlannedQuery) => isLightExpr(expr);
  return {
    query_range: endpoint({ plan: planRange, isLight, answer }),
    query: endpoint({ plan: planInstant, isLight, answer }),
    legacy_query: endpoint({
      isLight,
      plan: ({ params }, asker) => {
        const query = parseFilteredQuery(params);
        return frontend.planRange({ ...parseRangeParams(params, frontend.nowNs()), query }, asker);
      },
      answer: async (planned: PlannedQuery, _, context) => {
        const { result, stats } = await frontend.run(planned, context);
        if (result.kind !== "streams") {
          throw invalidArgument(
            "rpc error: code = Code(400) desc = legacy endpoints only support streams result type",
          );
        }
        return jsonTextResponse(200, encodeLegacyStreams(result, stats));
      },
    }),
    /** The rows of a tail from before it began, for the session of the tail. */
    tail_history: endpoint({
      plan: planRange,
      isLight,
      answer: async (planned: PlannedQuery, _, context) => {
        const { result } = await frontend.run(planned, context);
        if (result.kind !== "streams") throw invalidArgument("only log selector is supported");
        return { status: 200, body: encodeLogRows(result) };
      },
    }),
    /** The parameters of a tail, for its session. */
    tail: endpoint({
      plan: ({ params }): PlannedTail => {
        const tail = parseTailParams(params, frontend.nowNs());
        return { tail, refusal: tailRefusal(tail) };
      },
      answer: (value) => ({ value }),
    }),
    /** The value of an expression, for rules. */
    rule: endpoint({
      plan: planInstant,
      isLight,
      answer: async (planned: PlannedQuery, _, context) => ({
        value: instantAnswer(await frontend.run(planned, context)),
      }),
    }),
  };
}

/** What an answer may lack because the request asked for no more of it. */
function cutWarnings({ params }: PlannedQuery, result: QueryResult | LogResult): string[] {
  if (result.kind !== "streams") return [];
  const { limit, intervalNs } = params;
  const warnings: string[] = [];
  if (result.rowCount >= limit) {
    warnings.push(`the limit of ${limit} lines was reached: there may be more`);
  }
  if (intervalNs > 0n) {
    const interval = formatGoDuration(intervalNs);
    warnings.push(`lines less than ${interval} behind another were left out, as interval asks`);
  }
  return warnings;
}

/** Endpoints that list labels and streams. */
function listEndpoints(frontend: Frontend) {
  const { lists } = frontend;
  const parseRange = (params: URLSearchParams, sinceNs: bigint): TimeRange => {
    const { startNs, endNs } = parseBounds(params, frontend.nowNs(), sinceNs);
    // Clients mean the last nanosecond too.
    return { fromNs: startNs, toNs: endNs + 1n };
  };
  return {
    labels: endpoint({
      isLight: () => true,
      plan: ({ params }): StreamSelection => {
        const range = parseRange(params, labelsSinceNs);
        return { range, selectors: selectorsOf(params.get("query") ?? "") };
      },
      answer: async (selection, _, context) =>
        listAnswer(await lists.labelNames(selection, context)),
    }),
    label_values: endpoint({
      isLight: () => true,
      plan: ({ params, variables }): StreamSelection => {
        const range = parseRange(params, labelsSinceNs);
        const query = variables.name === tenantLabel ? "" : (params.get("query") ?? "");
        return { range, selectors: selectorsOf(query) };
      },
      answer: async (selection, { variables }, context) =>
        listAnswer(await lists.labelValues(variables.name as string, selection, context)),
    }),
    series: endpoint({
      isLight: () => true,
      plan: ({ params }): StreamSelection => {
        const matches = [...params.getAll("match[]"), ...params.getAll("match")];
        if (matches.length === 0) throw invalidArgument("at least one match[] is required");
        const range = parseRange(params, seriesSinceNs);
        return { range, selectors: seriesSelectors(matches) };
      },
      answer: async (selection, _, context) => {
        const found = await lists.series(selection, context);
        const label = context.tenants.length > 1 ? tenantLabel : undefined;
        return jsonTextResponse(200, encodeSeries(found, label));
      },
    }),
  };
}

/** Endpoints that say what there is, for clients that help to write a query. */
function exploreEndpoints(frontend: Frontend) {
  const { lists } = frontend;
  const planStats = ({ params }: EndpointRequest) => {
    const range = parseStepped(params, frontend.nowNs());
    return { ...range, matchers: parseSelector(params.get("query") ?? "") };
  };
  const volume = (kind: "instant" | "range") =>
    endpoint({
      isLight: () => true,
      plan: ({ params }) => parseVolumeParams(params, frontend.nowNs(), kind),
      answer: async (params, _, context) => {
        const answer = await lists.volume(params.plan, context);
        const series = answer === undefined ? [] : largestSeries(answer, params.limit);
        return jsonTextResponse(200, encodeVolume(kind, series, params, answer));
      },
    });
  const planFields = ({ params }: EndpointRequest, asker: Asker): PlannedFields => {
    const names = ["limit", "field_limit"];
    const limit = parseLimit(params, { names, fallback: defaultFieldLimit });
    const lineLimit = parseLimit(params, { names: ["line_limit"] });
    if (parseQuery(params.get("query") ?? "").kind !== "log")
      throw invalidArgument("only log selector is supported");
    const own = new URLSearchParams(params);
    own.delete("direction");
    own.delete("interval");
    own.set("limit", String(lineLimit));
    const query = frontend.planRange(parseRangeParams(own, frontend.nowNs()), asker);
    return { limit, query };
  };
  const fieldsOf = async ({ query }: PlannedFields, limit: number, context: QueryContext) => {
    const { result } = await frontend.run(query, context);
    return result.kind === "streams" ? detectFields(result, limit) : [];
  };
  return {
    index_stats: endpoint({
      isLight: () => true,
      plan: planStats,
      answer: async (asked, _, context) => {
        const { blockBytes: __, ...stats } = await lists.indexStats(asked, context);
        return jsonResponse(200, stats);
      },
    }),
    index_shards: endpoint({
      isLight: () => true,
      plan: (request) => {
        const targetBytes = parseShardBytes(request.params);
        return { targetBytes, ...planStats(request) };
      },
      answer: async ({ targetBytes, ...asked }, _, context) => {
        const stats = await lists.indexStats(asked, context);
        return jsonTextResponse(200, encodeShards(stats, targetBytes));
      },
    }),
    index_volume: volume("instant"),
    index_volume_range: volume("range"),
    detected_labels: endpoint({
      isLight: () => true,
      plan: ({ params }): StreamSelection => {
        const { startNs, endNs } = parseOrderedBounds(params, frontend.nowNs());
        // Clients mean the last nanosecond too.
        const range = { fromNs: startNs, toNs: endNs + 1n };
        return { range, selectors: selectorsOf(params.get("query") ?? "") };
      },
      answer: async (selection, _, context) => {
        const found = await detectLabels(lists, selection, context);
        return jsonResponse(200, found.length === 0 ? {} : { detectedLabels: found });
      },
    }),
    detected_fields: endpoint({
      plan: planFields,
      answer: async (planned, _, context) => {
        const { limit } = planned;
        return jsonTextResponse(200, encodeFields(await fieldsOf(planned, limit, context), limit));
      },
    }),
    detected_field_values: endpoint({
      plan: planFields,
      answer: async (planned, { variables }, context) => {
        const fields = await fieldsOf(planned, Number.POSITIVE_INFINITY, context);
        const field = fields.find(({ label }) => label === variables.name);
        const { limit } = planned;
        const values = [...(field?.values ?? [])].sort().slice(0, limit);
        return jsonResponse(200, values.length === 0 ? {} : { values, limit });
      },
    }),
    /** The parameters of a request for patterns, for those who have the patterns. */
    patterns: endpoint({
      plan: ({ params }): PatternParams => {
        const matchers = parseSelector(params.get("query") ?? "");
        const { startNs, endNs } = parseOrderedBounds(params, frontend.nowNs());
        const seconds = Number(parseStep(params, startNs, endNs)) / 1e9;
        const stepSeconds = Math.max(minPatternStepSeconds, Math.floor(seconds));
        return { matchers, fromNs: startNs, toNs: endNs + 1n, stepSeconds };
      },
      answer: (value) => ({ value }),
    }),
  };
}

/** A tail that was parsed, and why it must not begin. */
export interface PlannedTail {
  readonly tail: TailParams;
  /** The text of an invalid_argument. */
  readonly refusal: string | undefined;
}

/** Builds the stages of a tail once, because what they refuse must not depend on rows. */
function tailRefusal({ expr }: TailParams): string | undefined {
  if (expr.kind !== "log") return "only log selector is supported";
  try {
    compilePipeline({ stages: expr.stages, output: { kind: "log" } });
    return undefined;
  } catch (error) {
    if (!(error instanceof SkaldError)) throw error;
    return error.message;
  }
}

/** A request for fields that was parsed. */
export interface PlannedFields {
  readonly limit: number;
  readonly query: PlannedQuery;
}

/** Parsed parameters of a request for patterns. */
export interface PatternParams extends TimeRange {
  readonly matchers: ReturnType<typeof parseSelector>;
  readonly stepSeconds: number;
}

/** The pretty form of a query, or what is wrong with it. */
export function formatAnswer(query: string): HttpResponse {
  try {
    return jsonResponse(200, { status: "success", data: formatQuery(parseQuery(query)) });
  } catch (error) {
    if (!(error instanceof SkaldError)) throw error;
    return jsonResponse(error.status, { status: "invalid-query", error: error.message });
  }
}

function listAnswer(data: readonly string[]): HttpResponse {
  return jsonTextResponse(200, encodeList(data));
}

function instantAnswer({ result }: QueryAnswer): InstantAnswer {
  if (result.kind === "scalar") return { kind: "scalar", value: result.value };
  if (result.kind !== "vector") return { kind: "other" };
  const samples = result.samples.map(({ labels, value }) => ({ labels, value }));
  return { kind: "vector", samples };
}

/** The range of a request that has a step to check, though nothing is cut by it. */
function parseStepped(params: URLSearchParams, nowNs: bigint): TimeRange {
  const { startNs, endNs } = parseOrderedBounds(params, nowNs);
  parseStep(params, startNs, endNs);
  return { fromNs: startNs, toNs: endNs > startNs ? endNs : startNs + 1n };
}

function parseShardBytes(params: URLSearchParams): number {
  const text = params.get("targetBytesPerShard") ?? "";
  if (text === "") return defaultShardBytes;
  const bytes = parseSize(text);
  if (bytes === undefined || bytes < 1) {
    throw invalidArgument(
      `could not parse 'targetBytesPerShard' parameter: invalid size "${text}"`,
    );
  }
  return bytes;
}

/** A power of two equal parts of all hashes of streams, each with at most the target of bytes on average. */
function encodeShards(stats: IndexStats, targetBytes: number): string {
  let count = 1;
  while (count < maxShards && stats.bytes / count > targetBytes) count *= 2;
  const width = 2n ** 64n / BigInt(count);
  const share = (total: number) => Math.ceil(total / count);
  const part = {
    streams: share(stats.streams),
    chunks: share(stats.chunks),
    bytes: share(stats.bytes),
    entries: share(stats.entries),
  };
  const text = JSON.stringify(part);
  // Ends of hashes are larger than a number of JavaScript may be.
  const shards = Array.from({ length: count }, (_, i) => {
    const from = BigInt(i) * width;
    return `{"bounds":{"min":${from},"max":${from + width - 1n}},"stats":${text}}`;
  });
  return `{"shards":[${shards.join(",")}],"statistics":{}}\n`;
}
