import { fnv1a32, formatGoDuration } from "@skald/model";
import type { Logger } from "@skald/runtime";
import type { QueryFacts } from "./query-context.js";

export interface QueryLogOptions {
  readonly log: Logger;
  /** Log every query. */
  readonly logsAll: boolean;
  /** Log queries that take longer: 0 for none, less for every query. */
  readonly longerThanMs: number;
}

/** From here on a query counts as slow, as in the metrics of queries. */
const slowSeconds = 10;

/** Logs a line per query, with the names that public dashboards of logs read. Undefined when none is wanted. */
export function queryLogger(options: QueryLogOptions): ((facts: QueryFacts) => void) | undefined {
  const { log, logsAll, longerThanMs } = options;
  if (!logsAll && longerThanMs === 0) return undefined;
  return (facts) => {
    const isLong = longerThanMs !== 0 && facts.seconds * 1000 > longerThanMs;
    if (logsAll || isLong) log.info("query", fieldsOf(facts));
  };
}

function fieldsOf({ asked, status, type, range, seconds, stats }: QueryFacts) {
  const own = {
    caller: "metrics.go",
    component: "frontend",
    org_id: asked.tenants.join("|"),
    latency: seconds >= slowSeconds ? "slow" : "fast",
    query: asked.query,
    query_hash: fnv1a32(asked.query),
    query_type: type,
    range_type: range,
    length: formatGoDuration(asked.lengthNs),
    step: formatGoDuration(asked.stepNs),
    limit: asked.limit,
    status,
    duration: formatSeconds(seconds),
    ...(stats === undefined ? {} : statFields(stats, seconds)),
  };
  return { ...tagFields(asked.tags, own), ...own };
}

function statFields(stats: NonNullable<QueryFacts["stats"]>, seconds: number) {
  const { ingester, store } = stats;
  const sides = [ingester, store];
  const bytes = sides.reduce((n, side) => n + side.headBytes + side.decompressedBytes, 0);
  const lines = sides.reduce((n, side) => n + side.headLines + side.decompressedLines, 0);
  const atLeast = Math.max(seconds, 1e-6);
  return {
    returned_lines: stats.entriesReturned,
    total_entries: stats.entriesReturned,
    throughput: sizeText(bytes / atLeast),
    total_bytes: sizeText(bytes),
    lines_per_second: Math.round(lines / atLeast),
    total_lines: lines,
    queue_time: formatSeconds(stats.queueSeconds),
    querier_exec_time: formatSeconds(stats.execSeconds),
    splits: stats.subqueries ?? 0,
    shards: stats.shards,
    ingester_requests: stats.ingestersReached,
    cache_result_req: stats.caches?.result?.requests ?? 0,
    cache_chunk_hit: sides.reduce((n, side) => n + side.cachedPages, 0),
    cache_chunk_download_time: formatGoDuration(
      BigInt(sides.reduce((n, side) => n + side.downloadNs, 0)),
    ),
  };
}

/** Fields of every line, which no tag replaces. */
const lineFields = ["level", "ts", "msg", "traceid"];

/** The pairs of X-Query-Tags, `a=b,c=d`, with small letters in the names; without those that are taken. */
function tagFields(tags: string, taken: object): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const pair of tags.split(",")) {
    const [, name, value] = /^\s*([\w-]{1,64})=(.*?)\s*$/.exec(pair) ?? [];
    if (name === undefined || value === undefined) continue;
    const key = name.toLowerCase();
    if (!lineFields.includes(key) && !Object.hasOwn(taken, key)) fields[key] = value;
  }
  return fields;
}

const units = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Bytes in decimal units, as the dashboards parse them: `18kB`, `2.1MB`. */
function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)}${units[unit]}`;
}

function formatSeconds(seconds: number): string {
  return formatGoDuration(BigInt(Math.round(seconds * 1e9)));
}
