import type { CacheKind, QueryStats } from "@skald/model";
import { AnswerCache, type CachedRequest } from "./answer-cache.js";
import type { CacheDeps, ResultStores } from "./result-store.js";

/** Where answers are kept, and who knows which of them still hold. */
export interface KeptResults extends Omit<CacheDeps, "store"> {
  readonly stores: ResultStores;
}

/** An answer, and whether it was kept. */
export interface Kept<Answer> {
  readonly answer: Answer;
  readonly caches: NonNullable<QueryStats["caches"]>;
  readonly isKept: boolean;
}

export interface KeptAnswersDeps {
  /** Absent where nothing is kept. */
  readonly results: KeptResults | undefined;
  /** Who asks within the tenant. */
  readonly actors: readonly string[];
}

/** Answers that are given again while they hold. */
export class KeptAnswers {
  readonly #deps: KeptAnswersDeps;

  constructor(deps: KeptAnswersDeps) {
    this.#deps = deps;
  }

  /** What is kept of a request, or what `ask` gives. */
  async answer<Answer>(
    kind: CacheKind,
    request: Omit<CachedRequest, "actors">,
    ask: () => Promise<Answer>,
    mayKeep: (answer: Answer) => boolean,
    signal: AbortSignal,
  ): Promise<Kept<Answer>> {
    const { results, actors } = this.#deps;
    const store = results?.stores[kind];
    if (results === undefined || store === undefined)
      return { answer: await ask(), caches: {}, isKept: false };
    const cache = new AnswerCache({ kind, store, ...results });
    const own = { ...request, actors };
    const { answer, stats } = await cache.answer(own, ask, mayKeep, signal);
    return { answer, caches: { [kind]: stats }, isKept: stats.entriesFound > 0 };
  }
}
