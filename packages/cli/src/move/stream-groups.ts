import { type LogExpr, parseQuery, printQuery, type Stage } from "@skald/logql/syntax";
import type { Client } from "../client/client.js";
import {
  countLines,
  groupCountsOf,
  type LogPage,
  queryRange,
  type RangeQuery,
} from "../client/log-pages.js";
import type { LabelSet } from "../output/entries.js";
import { Failure } from "../shell/command.js";
import { SlicedWork, type SlicedWorkOptions, wholeMs } from "./slices.js";

type Asker = Pick<Client, "json">;

interface Range {
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** The most values of a label in one query, and the most letters of them together. */
const maxValues = 100;
const maxLetters = 2000;
/** A server counts no more series by default. */
const maxCounted = 500;
/** Stages after which a stream still has its labels. */
const keeping: readonly Stage["kind"][] = [
  ...(["line_filter", "label_filter", "json", "logfmt", "regexp"] as const),
  ...(["pattern", "decolorize", "line_format"] as const),
];

/**
 * Asks for the lines of a query by groups of streams that have about a page of lines each. A page of all streams would have
 * few lines of each, and for these the server reads a whole block of every stream.
 */
export class StreamGroups {
  readonly #client: Asker;
  readonly #expr: LogExpr;
  /** The label whose values make groups. */
  readonly #label: string;

  private constructor(client: Asker, expr: LogExpr, label: string) {
    this.#client = client;
    this.#expr = expr;
    this.#label = label;
  }

  /** Undefined where the lines are better asked for as they are: no label of all streams has several values, or the labels change on their way. */
  static async open(client: Asker, query: string, range: Range): Promise<StreamGroups | undefined> {
    const expr = readLogs(query);
    if (expr === undefined || expr.stages.some(({ kind }) => !keeping.includes(kind)))
      return undefined;
    const streams = (await seriesOf(client, expr, range)) ?? [];
    // Where a stream lacks the label, a field of its lines may have that name, and lines would be counted by its values.
    const shared = Object.keys(streams[0] ?? {}).filter((name) =>
      streams.every((one) => one[name]),
    );
    const usable = shared
      .map((name) => ({ name, size: new Set(streams.map((one) => one[name])).size }))
      .filter(({ size }) => size > 1 && size <= maxCounted);
    const [best] = usable.sort((a, b) => b.size - a.size);
    return best === undefined ? undefined : new StreamGroups(client, expr, best.name);
  }

  /** How many lines the streams have, whatever the query keeps of them; undefined where the server does not say. */
  count(range: Range): Promise<number | undefined> {
    return orNothing(countLines(this.#client, { ...range, query: selectorOf(this.#expr) }));
  }

  /** Queries that together answer the lines of a range, each once; undefined where these are a page, or the server does not count them. */
  async of(range: Range, batch: number): Promise<readonly string[] | undefined> {
    const query = printQuery(this.#expr);
    const asked = { ...range, query, label: this.#label };
    const counts = await orNothing(groupCountsOf(this.#client, asked));
    const total = [...(counts ?? [])].reduce((sum, [, count]) => sum + count, 0);
    if (counts === undefined || total < batch) return undefined;
    const groups: string[][] = [];
    let [lines, letters] = [batch, 0];
    for (const [value, count] of [...counts].sort(([, a], [, b]) => b - a)) {
      const last = groups.at(-1);
      const isFull = lines + count >= batch || letters + value.length > maxLetters;
      if (last === undefined || isFull || last.length === maxValues) {
        groups.push([value]);
        [lines, letters] = [count, value.length];
      } else {
        last.push(value);
        lines += count;
        letters += value.length;
      }
    }
    return groups.map((group) => this.#queryOf(group));
  }

  #queryOf(values: readonly string[]): string {
    const [first = ""] = values;
    const name = this.#label;
    const matcher =
      values.length === 1
        ? ({ name, op: "=", value: first } as const)
        : ({ name, op: "=~", value: values.map(escaped).join("|") } as const);
    return printQuery({ ...this.#expr, matchers: [...this.#expr.matchers, matcher] });
  }
}

/** A slice of an export is in memory until it is written; an import that was killed copies its slice again. */
const linesPerSlice = 50_000;

/** A work over the lines of a query in slices that have about 50,000 lines each, where the server counts them. */
export async function openSlices(
  client: Asker,
  query: string,
  options: Omit<SlicedWorkOptions, "wanted">,
): Promise<{ readonly work: SlicedWork; readonly groups: StreamGroups | undefined }> {
  const groups = await StreamGroups.open(client, query, options.range);
  const lines = await groups?.count(wholeMs(options.range));
  const wanted = lines === undefined ? {} : { wanted: lines / linesPerSlice };
  return { work: new SlicedWork({ ...options, ...wanted }), groups };
}

/** Queries that together answer the lines of a slice: by groups, or the one that was asked. */
export async function queriesOf(
  groups: StreamGroups | undefined,
  { query, batch, ...range }: Range & { readonly query: string; readonly batch: number },
): Promise<readonly string[]> {
  return (await groups?.of(range, batch)) ?? [query];
}

/** The pages of all lines of a query, the oldest first. */
export async function* linePages(
  client: Client,
  asked: Omit<RangeQuery, "limit" | "isForward">,
): AsyncGenerator<LogPage> {
  for await (const page of queryRange(client, { ...asked, limit: 0, isForward: true })) {
    if (page.kind === "metric") throw new Failure("usage", "a metric query has no lines");
    yield page;
  }
}

function readLogs(query: string): LogExpr | undefined {
  try {
    const expr = parseQuery(query);
    return expr.kind === "log" ? expr : undefined;
  } catch {
    // The server says what is wrong with it.
    return undefined;
  }
}

function selectorOf(expr: LogExpr): string {
  return printQuery({ ...expr, stages: [] });
}

async function seriesOf(client: Asker, expr: LogExpr, { fromNs, toNs }: Range) {
  const params = { "match[]": selectorOf(expr), start: `${fromNs}`, end: `${toNs}` };
  const asked = client.json<{ readonly data: readonly LabelSet[] }>("/loki/api/v1/series", params);
  return (await orNothing(asked))?.data;
}

/** What a server refuses is not needed. */
function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof Failure) return undefined;
    throw error;
  });
}

function escaped(value: string): string {
  return value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
