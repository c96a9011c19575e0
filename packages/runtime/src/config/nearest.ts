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
