import type { AskedSpan, HeldChanges, SpanChanges } from "@skald/contracts";
import type { TimeRange } from "@skald/model";

/** The tokens of several ingesters as one. */
export function joinTokens(tokens: ReadonlyMap<string, string>): string {
  return JSON.stringify([...tokens].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The tokens that one was joined from, by ingester; none when it is no such token. */
export function splitToken(token: string | undefined): ReadonlyMap<string, string> {
  if (token === undefined) return new Map();
  try {
    return new Map(JSON.parse(token) as [string, string][]);
  } catch {
    return new Map();
  }
}

/**
 * What ingesters tell of a span, as one. Where others answer than before it is not known what changed: what those have
 * that were not asked before was written at any time.
 */
export function uniteChanges(
  { fromNs, toNs }: AskedSpan,
  since: ReadonlyMap<string, string>,
  answers: ReadonlyMap<string, HeldChanges>,
  at: number,
): SpanChanges {
  const told = [...answers].map(([id, { spans }]) => [id, spans[at] as SpanChanges] as const);
  const token = joinTokens(new Map(told.map(([id, span]) => [id, span.token])));
  const areSame = since.size === answers.size && told.every(([id]) => since.has(id));
  if (!areSame) return { token, changed: [{ fromNs, toNs }] };
  return { token, changed: uniteRanges(told.flatMap(([, { changed }]) => changed)) };
}

/** Ranges in order, those that touch as one. */
export function uniteRanges(ranges: readonly TimeRange[]): TimeRange[] {
  const sorted = [...ranges].sort((a, b) => (a.fromNs < b.fromNs ? -1 : 1));
  const united: { fromNs: bigint; toNs: bigint }[] = [];
  for (const { fromNs, toNs } of sorted) {
    const last = united.at(-1);
    if (last === undefined || fromNs > last.toNs) united.push({ fromNs, toNs });
    else if (toNs > last.toNs) last.toNs = toNs;
  }
  return united;
}
