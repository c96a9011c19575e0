import type {
  StreamsRequest,
  TenantLabels,
  TenantStreams,
  VolumeAnswer,
  VolumePlan,
} from "@skald/contracts";
import { parseSelector } from "@skald/logql";
import {
  type CacheKind,
  type Clock,
  invalidArgument,
  joinQueryStats,
  type Matcher,
  notFound,
  nowNs,
  type TimeRange,
} from "@skald/model";
import { checkLength } from "./limits/check-limits.js";
import { noLongerAvailable, oldestAllowed, oldestLasting, withTimeout } from "./limits/limits.js";
import type { QueryContext } from "./query-context.js";
import { keptAnswer } from "./results-cache/answer-cache.js";

/** Streams to be listed: those that any of the selectors matches, all where there is no selector. Plain data. */
export interface StreamSelection {
  readonly selectors: readonly (readonly Matcher[])[];
  readonly range: TimeRange;
}

/** How much there is of a selector. */
export interface IndexStats {
  readonly streams: number;
  /** Blocks with such rows. */
  readonly chunks: number;
  /** Bytes of lines of those blocks: what a query reads at most. */
  readonly blockBytes: number;
  /** Bytes of lines. */
  readonly bytes: number;
  readonly entries: number;
}

/** The label that tells the tenants of one query apart. */
export const tenantLabel = "__tenant_id__";

/** Lists what is there in a range of time, without its rows: labels, streams, and how much of them. */
export class Lists {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async labelNames(selection: StreamSelection, context: QueryContext): Promise<string[]> {
    const names = new Set<string>();
    for (const { texts } of await this.#labels(selection, context)) {
      for (const name of texts) names.add(name);
    }
    if (context.tenants.length > 1 && names.size > 0) names.add(tenantLabel);
    return [...names].sort();
  }

  async labelValues(
    name: string,
    selection: StreamSelection,
    context: QueryContext,
  ): Promise<string[]> {
    if (name === tenantLabel) return [...context.tenants];
    const found = await this.#labels(selection, context, name);
    if (found.length === 1) return [...(found[0] as TenantLabels).texts];
    return [...new Set(found.flatMap(({ texts }) => texts))].sort();
  }

  /** Label sets of streams, by tenant. */
  async series(
    selection: StreamSelection,
    context: QueryContext,
  ): Promise<readonly TenantStreams[]> {
    const asked = this.#request(selection, context);
    if (asked === undefined) return [];
    return this.#keptList("seriesResult", asked, context, (signal) =>
      context.querier.run("streams", asked, { signal }),
    );
  }

  /**
   * Rows and bytes of streams by labels and time; undefined when none of that time may be looked at. Throws not_found
   * when the tenant may not ask for it, invalid_argument at more groups than it may have.
   */
  volume(
    plan: Omit<VolumePlan, "maxGroups">,
    context: QueryContext,
  ): Promise<VolumeAnswer | undefined> {
    const { volume_enabled, volume_max_series } = context.limits;
    if (!volume_enabled) return Promise.reject(notFound("not found"));
    const maxGroups = volume_max_series || Number.MAX_SAFE_INTEGER;
    return this.#volumes("volumeResult", { ...plan, maxGroups }, context);
  }

  /** Streams of a selector with rows in the range, and how much that is. */
  async indexStats(
    { matchers, ...range }: TimeRange & { readonly matchers: readonly Matcher[] },
    context: QueryContext,
  ): Promise<IndexStats> {
    const buckets = { firstNs: range.fromNs, stepNs: range.toNs - range.fromNs, count: 1 };
    const groupBy = { kind: "series", names: [] } as const;
    const plan = { ...range, matchers, groupBy, buckets, maxGroups: 1, countsStreams: true };
    // One by one: streams of two tenants are two, also where their labels are the same.
    const answers = await Promise.all(
      context.tenants.map((tenant) =>
        this.#volumes("statsResult", plan, { ...context, tenants: [tenant] }),
      ),
    );
    const sum = (of: (answer: VolumeAnswer) => number) =>
      answers.reduce((all, answer) => all + (answer === undefined ? 0 : of(answer)), 0);
    return {
      streams: sum(({ streamCount }) => streamCount),
      chunks: sum(({ blocks }) => blocks),
      blockBytes: sum(({ blockBytes }) => blockBytes),
      bytes: sum(({ bytes }) => Math.round(bytes[0] ?? 0)),
      entries: sum(({ rows }) => rows[0] ?? 0),
    };
  }

  /** Names of labels, or values of one, of the streams of a selection, by tenant. */
  async #labels(
    selection: StreamSelection,
    context: QueryContext,
    label?: string,
  ): Promise<readonly TenantLabels[]> {
    const request = this.#request(selection, context);
    if (request === undefined) return [];
    const asked = label === undefined ? request : { ...request, label };
    return this.#keptList("labelResult", asked, context, (signal) =>
      context.querier.run("labels", asked, { signal }),
    );
  }

  async #volumes(
    kind: "volumeResult" | "statsResult",
    plan: VolumePlan,
    context: QueryContext,
  ): Promise<VolumeAnswer | undefined> {
    const request = this.#request({ selectors: [plan.matchers], range: plan }, context);
    if (request === undefined) return undefined;
    const { selectors: _, ...rest } = request;
    const asked = { ...plan, ...rest };
    return this.#kept(kind, asked, context, {
      ask: (signal) => context.querier.run("volumes", asked, { signal }),
      mayKeep: ({ warnings }) => warnings.length === 0,
      counted: (answer, { caches, isKept }) => {
        const stats = isKept ? joinQueryStats([]) : answer.stats;
        return { ...answer, stats: { ...stats, caches } };
      },
    });
  }

  #keptList<Answer>(
    kind: "seriesResult" | "labelResult",
    asked: StreamsRequest,
    context: QueryContext,
    ask: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    return this.#kept(kind, asked, context, { ask, mayKeep: () => true, counted: (one) => one });
  }

  /** An answer that was kept, or that is asked for; rows that retention may take are always asked for. */
  #kept<Answer>(
    kind: CacheKind,
    asked: TimeRange & Pick<StreamsRequest, "tenants">,
    context: QueryContext,
    {
      ask,
      mayKeep,
      counted,
    }: {
      readonly ask: (signal: AbortSignal) => Promise<Answer>;
      readonly mayKeep: (answer: Answer) => boolean;
      readonly counted: (
        answer: Answer,
        kept: Pick<Awaited<ReturnType<typeof keptAnswer>>, "caches" | "isKept">,
      ) => Answer;
    },
  ): Promise<Answer> {
    const { limits, signal } = context;
    return withTimeout(limits, signal, async (bounded) => {
      if (asked.fromNs < oldestLasting(limits, { nowNs: nowNs(this.#clock) })) return ask(bounded);
      const { tenants } = asked;
      const question = { kind, tenants, range: asked, asked: { ...asked, actors: [] }, mayKeep };
      const { answer, ...kept } = await keptAnswer(
        { ...question, ask: () => ask(bounded) },
        context,
        bounded,
      );
      return counted(answer, kept);
    });
  }

  /** What to ask for streams in the time that may be looked at; undefined when none of it may be. */
  #request(
    { selectors, range: { fromNs, toNs } }: StreamSelection,
    { tenants, limits, actors = [] }: QueryContext,
  ): StreamsRequest | undefined {
    const oldestNs = oldestAllowed(limits, nowNs(this.#clock));
    const startNs = fromNs < oldestNs ? oldestNs : fromNs;
    if (toNs <= oldestNs) return undefined;
    if (toNs <= startNs) throw noLongerAvailable(limits);
    checkLength(toNs - 1n - startNs, limits);
    return { tenants, selectors, fromNs: startNs, toNs, actors };
  }
}

/** The selector of a `query` parameter; none means everything. */
export function selectorsOf(query: string): Matcher[][] {
  return query.trim() === "" ? [] : [parseSelector(query)];
}

/** The selectors of `match[]`; `{}` means everything, but only where it stands alone. */
export function seriesSelectors(matches: readonly string[]): Matcher[][] {
  const groups = [...new Set(matches)];
  if (groups.length === 1) {
    const matchers = parseSelector(groups[0] as string, { emptyCompatible: "bare" });
    return matchers.length === 0 ? [] : [matchers];
  }
  const empty = groups.find((match) => /^\s*\{\s*\}\s*$/.test(match));
  if (empty !== undefined) throw invalidArgument("0 matchers in group: {}");
  return groups.map((match) => parseSelector(match));
}
