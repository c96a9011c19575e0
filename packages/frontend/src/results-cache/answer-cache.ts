import { type CacheKind, type CacheStats, emptyCacheStats, type TimeRange } from "@skald/model";
import { unwrap, wrap } from "./envelope.js";
import { type CacheDeps, checkSize, resultKey } from "./result-store.js";

export interface AnswerCacheDeps extends CacheDeps {
  readonly kind: CacheKind;
}

/** A request, as the cache knows it. */
export interface CachedRequest {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly actors: readonly string[];
  /** All that the answer depends on but the rows. */
  readonly asked: unknown;
  /** Of the rows that it depends on. */
  readonly range: TimeRange;
}

export interface Cached<Answer> {
  readonly answer: Answer;
  readonly stats: CacheStats;
}

interface Entry<Answer> {
  readonly token: string;
  readonly answer: Answer;
}

/** Keeps whole answers, each for as long as no row of its time comes or goes. */
export class AnswerCache {
  readonly #deps: AnswerCacheDeps;

  constructor(deps: AnswerCacheDeps) {
    this.#deps = deps;
  }

  /** The answer that is kept, or what `ask` gives, which is kept where `mayKeep` says so. */
  async answer<Answer>(
    { tenants, actors, asked, range }: CachedRequest,
    ask: () => Promise<Answer>,
    mayKeep: (answer: Answer) => boolean,
    signal: AbortSignal,
  ): Promise<Cached<Answer>> {
    const { kind, store, changes } = this.#deps;
    const { fromNs, toNs } = range;
    const key = resultKey(kind, { tenants, asked, fromNs, toNs });
    const started = performance.now();
    const [value] = await store.get([key], signal);
    const downloadSeconds = (performance.now() - started) / 1000;
    checkSize(this.#deps, value?.byteLength ?? 0);
    const entry = unwrap(value) as Entry<Answer> | undefined;
    const span = { fromNs, toNs, ...(entry === undefined ? {} : { since: entry.token }) };
    const told = await changes
      .run("changes", { tenants, actors, spans: [span] }, { signal })
      .catch(() => undefined);
    signal.throwIfAborted();
    const looked = { ...emptyCacheStats(), requests: 1, entriesRequested: 1, downloadSeconds };
    const state = told?.[0];
    if (entry !== undefined && state?.changed.length === 0) {
      const bytesReceived = value?.byteLength ?? 0;
      const servedSeconds = Number(toNs - fromNs) / 1e9;
      const stats = { ...looked, entriesFound: 1, bytesReceived, servedSeconds };
      return { answer: entry.answer, stats };
    }
    const answer = await ask();
    if (state === undefined || !mayKeep(answer)) return { answer, stats: looked };
    const kept = wrap({ token: state.token, answer } satisfies Entry<Answer>, {
      compress: store.compress,
      maxBytes: store.maxValueBytes,
    });
    if (kept === undefined) return { answer, stats: looked };
    store.put(key, kept);
    return { answer, stats: { ...looked, entriesStored: 1, bytesSent: kept.byteLength } };
  }
}
