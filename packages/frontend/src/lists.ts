import type {
  Querier,
  StreamsRequest,
  TenantLabels,
  TenantStreams,
  VolumeAnswer,
  VolumePlan,
} from "@skald/contracts";
import { parseSelector } from "@skald/logql";
import {
  type Clock,
  joinQueryStats,
  type Matcher,
  notFound,
  nowNs,
  type TimeRange,
} from "@skald/model";
import { checkLength } from "./limits/check-limits.js";
import type { QueryTenantLimits } from "./limits/limits.js";
import { noLongerAvailable, oldestAllowed, oldestLasting } from "./limits/look-back.js";
import { withTimeout } from "./limits/timeout.js";
import type { KeptAnswers } from "./results-cache/kept-answers.js";
import { selectorsOf, seriesSelectors } from "./selectors.js";

export interface ListsDeps {
  readonly querier: Querier;
  readonly clock: Clock;
  /** Of several tenants: the strictest. */
  readonly limitsOf: (tenants: readonly string[]) => QueryTenantLimits;
  /** Who asks within the tenant; see `QueryShare`. */
  readonly actors: readonly string[];
  readonly kept: KeptAnswers;
}

/** How much there is of a selector. */
export interface IndexStats {
  readonly streams: number;
  /** Blocks with such rows. */
  readonly chunks: number;
  /** Of lines. */
  readonly bytes: number;
  readonly entries: number;
}

/** The label that tells the tenants of one query apart. */
export const tenantLabel = "__tenant_id__";

/** What there is in a range of time, without its rows: labels, streams, and how much of them. */
export class Lists {
  readonly #deps: ListsDeps;

  constructor(deps: ListsDeps) {
    this.#deps = deps;
  }

  async labelNames(
    tenants: readonly string[],
    query: string,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<string[]> {
    const names = new Set<string>();
    for (const { texts } of await this.#labels(tenants, { query }, range, signal)) {
      for (const name of texts) names.add(name);
    }
    if (tenants.length > 1 && names.size > 0) names.add(tenantLabel);
    return [...names].sort();
  }

  async labelValues(
    tenants: readonly string[],
    name: string,
    query: string,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<string[]> {
    if (name === tenantLabel) return [...tenants];
    const found = await this.#labels(tenants, { query, label: name }, range, signal);
    if (found.length === 1) return [...(found[0] as TenantLabels).texts];
    return [...new Set(found.flatMap(({ texts }) => texts))].sort();
  }

  /** Label sets of the streams that any of the selectors matches, by tenant. */
  async series(
    tenants: readonly string[],
    matches: readonly string[],
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<readonly TenantStreams[]> {
    const request = this.#request(tenants, seriesSelectors(matches), range);
    if (request === undefined) return [];
    const { limits, ...asked } = request;
    return this.#keptList("seriesResult", limits, asked, signal, (bounded) =>
      this.#deps.querier.run("streams", asked, { signal: bounded }),
    );
  }

  /**
   * Rows and bytes of streams by labels and time; undefined when none of that time may be looked at. Throws not_found
   * when the tenant may not ask for it, invalid_argument at more groups than it may have.
   */
  volume(
    tenants: readonly string[],
    plan: Omit<VolumePlan, "maxGroups">,
    signal: AbortSignal,
  ): Promise<VolumeAnswer | undefined> {
    const { volume_enabled, volume_max_series } = this.#deps.limitsOf(tenants);
    if (!volume_enabled) return Promise.reject(notFound("not found"));
    const maxGroups = volume_max_series || Number.MAX_SAFE_INTEGER;
    return this.#volumes("volumeResult", tenants, { ...plan, maxGroups }, signal);
  }

  /** Streams of a selector with rows in the range, and how much that is. */
  async indexStats(
    tenants: readonly string[],
    query: string,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<IndexStats> {
    const buckets = { firstNs: range.fromNs, stepNs: range.toNs - range.fromNs, count: 1 };
    const groupBy = { kind: "series", names: [] } as const;
    const matchers = parseSelector(query);
    const plan = { ...range, matchers, groupBy, buckets, maxGroups: 1, countsStreams: true };
    // One by one: streams of two tenants are two, also where their labels are the same.
    const answers = await Promise.all(
      tenants.map((tenant) => this.#volumes("statsResult", [tenant], plan, signal)),
    );
    const sum = (of: (answer: VolumeAnswer) => number) =>
      answers.reduce((all, answer) => all + (answer === undefined ? 0 : of(answer)), 0);
    return {
      streams: sum(({ streamCount }) => streamCount),
      chunks: sum(({ blocks }) => blocks),
      bytes: sum(({ bytes }) => Math.round(bytes[0] ?? 0)),
      entries: sum(({ rows }) => rows[0] ?? 0),
    };
  }

  /** Names of labels, or values of one, of the streams of a selector, by tenant. */
  async #labels(
    tenants: readonly string[],
    { query, label }: { readonly query: string; readonly label?: string },
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<readonly TenantLabels[]> {
    const request = this.#request(tenants, selectorsOf(query), range);
    if (request === undefined) return [];
    const { limits, ...asked } = request;
    const own = label === undefined ? asked : { ...asked, label };
    return this.#keptList("labelResult", limits, own, signal, (bounded) =>
      this.#deps.querier.run("labels", own, { signal: bounded }),
    );
  }

  async #volumes(
    kind: "volumeResult" | "statsResult",
    tenants: readonly string[],
    plan: VolumePlan,
    signal: AbortSignal,
  ): Promise<VolumeAnswer | undefined> {
    const request = this.#request(tenants, [plan.matchers], plan);
    if (request === undefined) return undefined;
    const { limits, selectors: _, ...asked } = request;
    const own = { ...plan, ...asked };
    return withTimeout(limits, signal, async (bounded) => {
      const ask = () => this.#deps.querier.run("volumes", own, { signal: bounded });
      if (own.fromNs < oldestLasting(limits, { nowNs: nowNs(this.#deps.clock) })) return ask();
      const mayKeep = ({ warnings }: VolumeAnswer) => warnings.length === 0;
      const cached = { tenants, range: own, asked: { ...own, actors: [] } };
      const { answer, caches, isKept } = await this.#deps.kept.answer(
        kind,
        cached,
        ask,
        mayKeep,
        bounded,
      );
      const stats = isKept ? joinQueryStats([]) : answer.stats;
      return { ...answer, stats: { ...stats, caches } };
    });
  }

  /** Lists of labels or streams, kept or asked for. */
  #keptList<Answer>(
    kind: "seriesResult" | "labelResult",
    limits: QueryTenantLimits,
    asked: StreamsRequest,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    return withTimeout(limits, signal, async (bounded) => {
      if (asked.fromNs < oldestLasting(limits, { nowNs: nowNs(this.#deps.clock) }))
        return ask(bounded);
      const cached = { tenants: asked.tenants, range: asked, asked: { ...asked, actors: [] } };
      return (
        await this.#deps.kept.answer(
          kind,
          cached,
          () => ask(bounded),
          () => true,
          bounded,
        )
      ).answer;
    });
  }

  /** What to ask for streams in the time that may be looked at; undefined when none of it may be. */
  #request(
    tenants: readonly string[],
    selectors: readonly (readonly Matcher[])[],
    { fromNs, toNs }: TimeRange,
  ): (StreamsRequest & { readonly limits: QueryTenantLimits }) | undefined {
    const limits = this.#deps.limitsOf(tenants);
    const oldestNs = oldestAllowed(limits, nowNs(this.#deps.clock));
    const startNs = fromNs < oldestNs ? oldestNs : fromNs;
    if (toNs <= oldestNs) return undefined;
    if (toNs <= startNs) throw noLongerAvailable(limits);
    checkLength(toNs - 1n - startNs, limits);
    return { tenants, selectors, fromNs: startNs, toNs, actors: this.#deps.actors, limits };
  }
}
