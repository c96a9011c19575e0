import { parseQuery } from "@skald/logql";
import { invalidArgument, parseSize, type TimeRange } from "@skald/model";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  jsonTextResponse,
} from "@skald/transport";
import { encodeFields, encodeVolume } from "../encode/explore.js";
import { type DetectedField, detectFields } from "../explore/detected-fields.js";
import { detectLabels } from "../explore/detected-labels.js";
import { largestSeries, parseVolumeParams } from "../explore/volume.js";
import type { Frontend } from "../frontend.js";
import type { IndexStats } from "../lists.js";
import { parseLimit, parseOrderedBounds, parseRangeParams, parseStep } from "../params/params.js";

/** Endpoints that say what there is, for whoever builds a query. */
export type ExploreEndpoint =
  | "index_stats"
  | "index_shards"
  | "index_volume"
  | "index_volume_range"
  | "detected_labels"
  | "detected_fields"
  | "detected_field_values";

const defaultFieldLimit = 1000;
const defaultShardBytes = 600 * 1024 * 1024;
const maxShards = 1024;

/** What answers them. */
export function exploreHandlers(
  frontend: Frontend,
  tenantsOf: (request: HttpRequest) => string[],
): Readonly<Record<ExploreEndpoint, HttpHandler>> {
  const stats = (request: HttpRequest): Promise<IndexStats> => {
    const tenants = tenantsOf(request);
    const { params, signal } = request;
    const range = parseStepped(params, frontend.nowNs());
    return frontend.lists.indexStats(tenants, params.get("query") ?? "", range, signal);
  };
  const volume = async (request: HttpRequest, kind: "instant" | "range"): Promise<HttpResponse> => {
    const tenants = tenantsOf(request);
    const params = parseVolumeParams(request.params, frontend.nowNs(), kind);
    const answer = await frontend.lists.volume(tenants, params.plan, request.signal);
    const series = answer === undefined ? [] : largestSeries(answer, params.limit);
    return jsonTextResponse(200, encodeVolume(kind, series, params, answer));
  };
  return {
    index_stats: async (request) => jsonResponse(200, await stats(request)),
    index_shards: async (request) => {
      const targetBytes = parseShardBytes(request.params);
      return jsonTextResponse(200, encodeShards(await stats(request), targetBytes));
    },
    index_volume: (request) => volume(request, "instant"),
    index_volume_range: (request) => volume(request, "range"),
    detected_labels: async (request) => {
      const tenants = tenantsOf(request);
      const { params, signal } = request;
      const { startNs, endNs } = parseOrderedBounds(params, frontend.nowNs());
      // Clients mean the last nanosecond too.
      const asked = {
        query: params.get("query") ?? "",
        range: { fromNs: startNs, toNs: endNs + 1n },
      };
      const found = await detectLabels(frontend.lists, tenants, asked, signal);
      return jsonResponse(200, found.length === 0 ? {} : { detectedLabels: found });
    },
    detected_fields: async (request) => {
      const { fields, limit } = await fieldsOf(frontend, request, tenantsOf(request));
      return jsonTextResponse(200, encodeFields(fields, limit));
    },
    detected_field_values: async (request) => {
      const { fields, limit } = await fieldsOf(frontend, request, tenantsOf(request), true);
      const field = fields.find(({ label }) => label === request.variables.name);
      const values = [...(field?.values ?? [])].sort().slice(0, limit);
      return jsonResponse(200, values.length === 0 ? {} : { values, limit });
    },
  };
}

/** The fields of a sample of lines, and how many of them, or of their values, were asked for. */
async function fieldsOf(
  frontend: Frontend,
  { params, signal }: HttpRequest,
  tenants: readonly string[],
  everyField = false,
): Promise<{ fields: DetectedField[]; limit: number }> {
  const limit = parseLimit(params, {
    names: ["limit", "field_limit"],
    fallback: defaultFieldLimit,
  });
  const lineLimit = parseLimit(params, { names: ["line_limit"] });
  const query = params.get("query") ?? "";
  if (parseQuery(query).kind !== "log") throw invalidArgument("only log selector is supported");
  const own = new URLSearchParams(params);
  own.delete("direction");
  own.delete("interval");
  own.set("limit", String(lineLimit));
  const { result } = await frontend.queryRange(
    tenants,
    parseRangeParams(own, frontend.nowNs()),
    signal,
  );
  if (result.kind !== "streams") return { fields: [], limit };
  return { fields: detectFields(result, everyField ? Number.POSITIVE_INFINITY : limit), limit };
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

/** Equal parts of all hashes of streams, a power of two of them, each of no more than so many bytes on average. */
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
