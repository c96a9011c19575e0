import type { Querier } from "@skald/contracts";
import { type CacheKind, emptyCacheStats, type QueryStats, type TimeRange } from "@skald/model";
import { type ResultStores, resultKey, unwrap, wrap } from "./result-store.js";

/** Where answers are kept, and who knows which of them are still valid. */
export interface CacheContext {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly actors?: readonly string[];
  readonly querier: Querier<"changes">;
  /** Absent where nothing is kept. */
  readonly stores?: ResultStores | undefined;
}

/** A question whose answer may be kept. */
export interface CachedQuestion<Answer> {
  readonly kind: CacheKind;
  readonly tenants: readonly string[];
  /** All that the answer depends on but the rows. */
  readonly asked: unknown;
  /** The time of the rows that it depends on. */
  readonly range: TimeRange;
  readonly ask: () => Promise<Answer>;
  /** Whether an answer is one to keep. */
  readonly mayKeep: (answer: Answer) => boolean;
}

/** An answer, and whether it was kept. */
export interface Kept<Answer> {
  readonly answer: Answer;
  readonly caches: NonNullable<QueryStats["caches"]>;
  readonly isKept: boolean;
}

interface Entry<Answer> {
  readonly token: string;
  readonly answer: Answer;
}

/** Gives an answer that was kept, while no row of its time comes or goes; else asks for one and keeps it. */
export async function keptAnswer<Answer>(
  { kind, tenants, asked, range, ask, mayKeep }: CachedQuestion<Answer>,
  { stores, querier, actors = [] }: CacheContext,
  signal: AbortSignal,
): Promise<Kept<Answer>> {
  const store = stores?.[kind];
  if (store === undefined) return { answer: await ask(), caches: {}, isKept: false };
  const { fromNs, toNs } = range;
  const key = resultKey(kind, { tenants, asked, fromNs, toNs });
  const started = performance.now();
  const [value] = await store.get([key], signal);
  const downloadSeconds = (performance.now() - started) / 1000;
  const entry = unwrap(value) as Entry<Answer> | undefined;
  const span = { fromNs, toNs, ...(entry === undefined ? {} : { since: entry.token }) };
  const changes = await querier
    .run("changes", { tenants, actors, spans: [span] }, { signal })
    .catch(() => undefined);
  signal.throwIfAborted();
  const looked = { ...emptyCacheStats(), requests: 1, entriesRequested: 1, downloadSeconds };
  const state = changes?.[0];
  if (entry !== undefined && state?.changed.length === 0) {
    const bytesReceived = value?.byteLength ?? 0;
    const servedSeconds = Number(toNs - fromNs) / 1e9;
    const stats = { ...looked, entriesFound: 1, bytesReceived, servedSeconds };
    return { answer: entry.answer, caches: { [kind]: stats }, isKept: true };
  }
  const answer = await ask();
  const { compress, maxValueBytes: maxBytes } = store;
  const kept =
    state === undefined || !mayKeep(answer)
      ? undefined
      : wrap({ token: state.token, answer } satisfies Entry<Answer>, { compress, maxBytes });
  if (kept === undefined) return { answer, caches: { [kind]: looked }, isKept: false };
  store.put(key, kept);
  const stats = { ...looked, entriesStored: 1, bytesSent: kept.byteLength };
  return { answer, caches: { [kind]: stats }, isKept: false };
}
