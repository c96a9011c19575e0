/** A set of code points: sorted disjoint ranges, first, last, first, last, ... */
export type CharSet = readonly number[];

const maxCode = 0x10ffff;

/** Sorts and joins ranges given in any order. */
export function charSet(ranges: readonly number[]): CharSet {
  const pairs: [number, number][] = [];
  for (let i = 0; i < ranges.length; i += 2) {
    pairs.push([ranges[i] as number, ranges[i + 1] as number]);
  }
  pairs.sort((a, b) => a[0] - b[0]);
  const joined: number[] = [];
  for (const [first, last] of pairs) {
    const end = joined.at(-1);
    if (end !== undefined && first <= end + 1) joined[joined.length - 1] = Math.max(end, last);
    else joined.push(first, last);
  }
  return joined;
}

export function negateSet(set: CharSet): CharSet {
  const inverse: number[] = [];
  let next = 0;
  for (let i = 0; i < set.length; i += 2) {
    if ((set[i] as number) > next) inverse.push(next, (set[i] as number) - 1);
    next = (set[i + 1] as number) + 1;
  }
  if (next <= maxCode) inverse.push(next, maxCode);
  return inverse;
}

export function setsMeet(a: CharSet, b: CharSet): boolean {
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if ((a[i + 1] as number) < (b[j] as number)) i += 2;
    else if ((b[j + 1] as number) < (a[i] as number)) j += 2;
    else return true;
  }
  return false;
}

export function setHas(set: CharSet, code: number): boolean {
  for (let i = 0; i < set.length; i += 2) {
    if (code >= (set[i] as number) && code <= (set[i + 1] as number)) return true;
  }
  return false;
}

/**
 * Adds the other case of ASCII letters, and of k and s the signs that fold to them (U+212A, U+017F); undefined when
 * the set holds other characters, whose folding is left to the regex engine.
 */
export function foldSet(set: CharSet): CharSet | undefined {
  const ranges: number[] = [...set];
  for (let i = 0; i < set.length; i += 2) {
    const first = set[i] as number;
    const last = set[i + 1] as number;
    if (last > 127) return undefined;
    for (let code = first; code <= last; code++) {
      if ((code >= 65 && code <= 90) || (code >= 97 && code <= 122)) {
        ranges.push(code ^ 32, code ^ 32);
      }
      if ((code | 32) === 107) ranges.push(0x212a, 0x212a);
      if ((code | 32) === 115) ranges.push(0x17f, 0x17f);
    }
  }
  return charSet(ranges);
}

const digit: CharSet = [48, 57];
const space: CharSet = [9, 10, 12, 13, 32, 32];
const word: CharSet = [48, 57, 65, 90, 95, 95, 97, 122];

const perlSets: Readonly<Record<string, CharSet | undefined>> = { d: digit, s: space, w: word };

/** `\d` and its kin: ASCII only, unless folding adds to them; undefined for any other letter. */
export function perlSet(letter: string, fold: boolean): CharSet | undefined {
  const set = perlSets[letter.toLowerCase()];
  if (set === undefined) return undefined;
  const folded = fold ? (foldSet(set) as CharSet) : set;
  return letter === letter.toLowerCase() ? folded : negateSet(folded);
}

/** `[[:alpha:]]` and its kin. */
export const posixSets: Readonly<Record<string, CharSet | undefined>> = {
  alnum: [48, 57, 65, 90, 97, 122],
  alpha: [65, 90, 97, 122],
  ascii: [0, 127],
  blank: [9, 9, 32, 32],
  cntrl: [0, 31, 127, 127],
  digit,
  graph: [33, 126],
  lower: [97, 122],
  print: [32, 126],
  punct: [33, 47, 58, 64, 91, 96, 123, 126],
  space: [9, 13, 32, 32],
  upper: [65, 90],
  word,
  xdigit: [48, 57, 65, 70, 97, 102],
};
