import type { FoundPatterns, Pattern } from "@skald/contracts";

/** Patterns with fewer lines are noise. */
const minHits = 30;
const maxPatterns = 300;

/** What several found, each in streams of its own, as one. */
export function mergePatterns(found: readonly FoundPatterns[]): FoundPatterns {
  const merged = new Map<string, Pattern>();
  for (const pattern of found.flatMap(({ patterns }) => patterns)) {
    const key = `${pattern.level}\n${pattern.pattern}`;
    const known = merged.get(key);
    const samples = known === undefined ? pattern.samples : added(known, pattern);
    merged.set(key, { ...pattern, samples });
  }
  const lines = found.reduce((sum, one) => sum + one.lines, 0);
  return { patterns: mostFrequent([...merged.values()]), lines };
}

/** Those that are no noise, the most frequent first. */
export function mostFrequent(patterns: readonly Pattern[]): Pattern[] {
  return patterns
    .map((pattern) => ({ pattern, hits: hitsOf(pattern) }))
    .filter(({ hits }) => hits >= minHits)
    .sort((a, b) => b.hits - a.hits)
    .slice(0, maxPatterns)
    .map(({ pattern }) => pattern);
}

function hitsOf({ samples }: Pattern): number {
  return samples.reduce((sum, [, count]) => sum + count, 0);
}

function added(a: Pattern, b: Pattern): Pattern["samples"] {
  const counts = new Map(a.samples);
  for (const [time, count] of b.samples) counts.set(time, (counts.get(time) ?? 0) + count);
  return [...counts].sort(([left], [right]) => left - right);
}
