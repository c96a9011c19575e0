import { type AnswerStream, type Entry, entriesOf, labelText } from "../output/entries.js";
import type { MetricResult } from "../output/metric-output.js";
import { Failure } from "../shell/command.js";
import type { Client, Params } from "./client.js";

export interface RangeQuery {
  readonly query: string;
  readonly fromNs: bigint;
  readonly toNs: bigint;
  /** Most lines; 0: all. */
  readonly limit: number;
  /** Most lines of one request. */
  readonly batch: number;
  readonly isForward: boolean;
  readonly step?: string | undefined;
  readonly interval?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Repeats each request at least this often. */
  readonly retries?: number;
}

export interface LogPage {
  readonly kind: "lines";
  /** The streams of the answer, which may have lines of the page before. */
  readonly streams: readonly AnswerStream[];
  /** The new lines, in order. */
  readonly entries: readonly Entry[];
  readonly stats: unknown;
  readonly warnings: readonly string[];
  /** Whether the limit of the query cut the answer. */
  readonly isCut: boolean;
}

export interface MetricPage {
  readonly kind: "metric";
  readonly answer: MetricResult;
  readonly stats: unknown;
  readonly warnings: readonly string[];
}

export interface QueryAnswer {
  readonly data: (
    | MetricResult
    | { readonly resultType: "streams"; readonly result: readonly AnswerStream[] }
  ) & { readonly stats?: unknown };
  readonly warnings?: readonly string[];
}

/** Servers refuse to answer more lines at once. */
const batchMax = 5000;

/**
 * Asks a range: a metric query has one answer, and lines come page by page. A page begins at the time of the last line before
 * it, because more lines may have this time; those that were seen are left out.
 */
export async function* queryRange(
  client: Client,
  query: RangeQuery,
): AsyncGenerator<LogPage | MetricPage> {
  const { isForward, limit, headers, retries } = query;
  let { batch } = query;
  let [fromNs, toNs] = [query.fromNs, query.toNs];
  let count = 0;
  /** Lines at the time where the next page begins. */
  let seen = new Set<string>();
  for (;;) {
    const left = limit === 0 ? batch : limit - count;
    const asked = Math.min(left + seen.size, seen.size < batch ? batch : batchMax);
    const params = { ...paramsOf(query), start: `${fromNs}`, end: `${toNs}`, limit: asked };
    const answer = await client.json<QueryAnswer>("/loki/api/v1/query_range", params, {
      ...(headers === undefined ? {} : { headers }),
      ...(retries === undefined ? {} : { retries }),
    });
    const { data, warnings = [] } = answer;
    if (data.resultType !== "streams") {
      yield { kind: "metric", answer: data, stats: data.stats, warnings };
      return;
    }
    const all = entriesOf(data.result, isForward);
    const entries = all.filter((entry) => !seen.has(keyOf(entry)));
    count += entries.length;
    const isEnd = all.length < asked;
    const isFull = limit > 0 && count >= limit;
    const isCut = isFull && !isEnd;
    yield { kind: "lines", streams: data.result, entries, stats: data.stats, warnings, isCut };
    if (isEnd || isFull) return;
    const last = all.at(-1)!.ns;
    if (last === (all[0] as Entry).ns && entries.length === 0) batch = widen(batch, last);
    seen = new Set(all.filter(({ ns }) => ns === last).map(keyOf));
    if (isForward) fromNs = last;
    else toNs = last + 1n;
  }
}

function widen(batch: number, ns: bigint): number {
  if (batch < batchMax) return Math.min(2 * batch, batchMax);
  throw new Failure(
    "unreached",
    `more than ${batchMax} lines have the time ${ns}: they cannot be paged`,
  );
}

function paramsOf({ query, isForward, step, interval }: RangeQuery): Params {
  return { query, direction: isForward ? "FORWARD" : "BACKWARD", step, interval };
}

/** Tells lines of one time apart. */
export function keyOf({ ns, labels, line, metadata = {} }: Entry): string {
  return `${ns} ${labelText(labels)} ${labelText(metadata)} ${line}`;
}

/** Warnings of an answer that lacks something; that a limit was reached is none. */
export function lacks(warnings: readonly string[]): string[] {
  return warnings.filter((one) => !/^(the limit of|lines less than) /.test(one));
}

/** How many lines a log query has in a range, whose ends are whole milliseconds. */
export async function countLines(client: Asker, asked: CountedRange): Promise<number> {
  const [only] = await countsOf(client, "sum", asked);
  return Number(only?.value[1] ?? 0);
}

/** How many lines a log query has by the values of a label; "" stands for streams without it. */
export async function groupCountsOf(
  client: Asker,
  { label, ...asked }: CountedRange & { readonly label: string },
): Promise<ReadonlyMap<string, number>> {
  const found = await countsOf(client, `sum by (${label})`, asked);
  return new Map(found.map(({ metric, value }) => [metric[label] ?? "", Number(value[1])]));
}

type Asker = Pick<Client, "json">;
type CountedRange = Pick<RangeQuery, "query" | "fromNs" | "toNs">;

async function countsOf(client: Asker, sum: string, { query, fromNs, toNs }: CountedRange) {
  const rangeMs = (toNs - fromNs) / 1_000_000n;
  // A window has its end and not its start.
  const params = {
    query: `${sum} (count_over_time(${query} [${rangeMs}ms]))`,
    time: `${toNs - 1n}`,
  };
  const { data } = await client.json<{ readonly data: MetricResult }>("/loki/api/v1/query", params);
  return data.resultType === "vector" ? data.result : [];
}
