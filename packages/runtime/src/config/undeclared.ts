/** Keys and flags that are accepted and change nothing. */
export interface IgnoredRow {
  readonly why: string;
  /**
   * Paths in YAML, and flags with one dash. `*` stands for any text, `{a,b}` for one of several; what matches is accepted
   * with all that it holds, and `a.*` names the section `a` too.
   */
  readonly keys: readonly string[];
}

/** A key or flag without effect that was set. */
export interface IgnoredSetting {
  /** The path of the key, or the flag with its dash. */
  readonly key: string;
  readonly value: unknown;
  /** `loki.yaml:12:3`; undefined for a flag. */
  readonly place?: string;
  readonly why: string;
}

/** Tells why a key or flag that is not declared has no effect. */
export class IgnoredKeys {
  readonly #rows: readonly IgnoredRow[];
  #matchers: { why: string; matcher: RegExp }[] | undefined;

  constructor(rows: readonly IgnoredRow[]) {
    this.#rows = rows;
  }

  /** By the first row that names the path, or the flag with its dash; undefined when none does. */
  whyOf(key: string): string | undefined {
    // Most files have no such key: the patterns are compiled for the first one.
    this.#matchers ??= this.#rows.map(({ why, keys }) => ({ why, matcher: matcherOf(keys) }));
    const names = [key, `${key}.`];
    return this.#matchers.find(({ matcher }) => names.some((name) => matcher.test(name)))?.why;
  }
}

function matcherOf(patterns: readonly string[]): RegExp {
  const sources = patterns.map((pattern) =>
    pattern
      .replace(/[.[\]]/g, "\\$&")
      .replaceAll("*", ".*")
      .replace(/\{(.*?)\}/g, (_, words: string) => `(?:${words.replaceAll(",", "|")})`),
  );
  return new RegExp(`^(?:${sources.join("|")})$`);
}

/** One warning for each reason. A key that several items or tenants have is named once, with its first place. */
export function ignoredWarnings(settings: readonly IgnoredSetting[]): string[] {
  const namesByReason = new Map<string, Map<string, string>>();
  for (const { key, place, why } of settings) {
    const names = namesByReason.get(why) ?? new Map<string, string>();
    if (!names.has(key)) names.set(key, place === undefined ? key : `${key} (${place})`);
    namesByReason.set(why, names);
  }
  return [...namesByReason].map(
    ([why, names]) => `${why}; no effect: ${[...names.values()].join(", ")}`,
  );
}

/** The candidate that needs the fewest edits, if they are few enough for a typing error; undefined otherwise. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestEdits = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestEdits) continue;
    const edits = editDistance(word, candidate);
    if (edits >= bestEdits) continue;
    bestEdits = edits;
    best = candidate;
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours between two words. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let edits = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + same);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) edits = Math.min(edits, before[j - 2]! + 1);
      row.push(edits);
    }
    before = above;
    above = row;
  }
  return above[b.length]!;
}
