/**
 * Texts compiled for one pass over any input: the automaton of A. Aho and M. Corasick, cut off behind each match.
 * States are numbered level by level, so the children of state s are `first[s] .. first[s + 1])`, ascending by
 * their bytes in `labels`. State 0 is the root.
 */
export interface TextSet {
  /** A to Z equal a to z; other letters are not folded. */
  readonly ignoreCase: boolean;
  /** One of the texts is empty, so every input has it; there are no states then. */
  readonly isEverywhere: boolean;
  readonly stateCount: number;
  /** Child of the root by (folded) byte; 0: none. */
  readonly root: Uint32Array;
  /** length: states + 1 */
  readonly first: Uint32Array;
  /** Where to go on when no child fits; `matchState` for a state that ends a text. */
  readonly fail: Uint32Array;
  /** The byte that leads to each state. */
  readonly labels: Uint8Array;
  /** All of it in one piece, as assembly/text-set.ts reads it. */
  readonly packed: Uint8Array;
}

/** In `fail`: a text ends here. */
export const matchState = 0xffffffff;

/** Up to here the places where a text may begin are found 16 at a time, by masks of half bytes; else by pairs of bytes. */
const maxMaskedTexts = 48;
/** Bytes of a text that the masks look at, and groups of texts that they tell apart. */
const maskedBytes = 3;
const buckets = 8;

const headerWords = 8;
const pairBytes = 65536 / 8;
/** Labels are read 16 at a time. */
const labelPadding = 16;

/** Compiles texts in time and memory that grow with their bytes: about 9 bytes of memory for each. */
export function compileTextSet(texts: readonly Uint8Array[], ignoreCase: boolean): TextSet {
  const folded = ignoreCase ? texts.map(lowerCase) : texts;
  const isEverywhere = folded.some(({ length }) => length === 0);
  const sorted = isEverywhere ? [] : [...folded].sort(compareBytes);
  const states = new States(sorted);
  const isMasked = sorted.length <= maxMaskedTexts;
  const skipBytes = isMasked ? maskedBytes * 32 : pairBytes;
  const { count } = states;
  const rootAt = headerWords * 4;
  const skipAt = rootAt + 256 * 4;
  const firstAt = skipAt + skipBytes;
  const failAt = firstAt + (count + 1) * 4;
  const labelsAt = failAt + count * 4;
  const buffer = new ArrayBuffer(labelsAt + count + labelPadding);
  const header = [isMasked ? 1 : 0, ignoreCase ? 1 : 0, rootAt, skipAt, firstAt, failAt, labelsAt];
  new Uint32Array(buffer, 0, headerWords).set(header);
  const root = new Uint32Array(buffer, rootAt, 256);
  const first = new Uint32Array(buffer, firstAt, count + 1);
  const fail = new Uint32Array(buffer, failAt, count);
  const labels = new Uint8Array(buffer, labelsAt, count);
  states.copyTo(first, fail, labels);
  for (let child = first[0]!; child < (first[1] ?? 0); child++) root[labels[child]!] = child;
  const skip = new Uint8Array(buffer, skipAt, skipBytes);
  if (isMasked) fillMasks(skip, sorted, ignoreCase);
  else fillPairs(skip, sorted, ignoreCase);
  const packed = new Uint8Array(buffer);
  return { ignoreCase, isEverywhere, stateCount: count, root, first, fail, labels, packed };
}

/** The child of a state by a byte that is folded where the set folds; 0: none. */
export function childOf({ root, first, labels }: TextSet, state: number, byte: number): number {
  if (state === 0) return root[byte]!;
  let low = first[state]!;
  let high = first[state + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (labels[middle]! < byte) low = middle + 1;
    else high = middle;
  }
  return low < first[state + 1]! && labels[low] === byte ? low : 0;
}

/** Builds the automaton level by level from sorted texts: a state is the range of texts that begin with it. */
class States {
  readonly #texts: readonly Uint8Array[];
  readonly #first: number[] = [];
  readonly #fail: number[] = [0];
  readonly #labels: number[] = [0];
  readonly #parents: number[] = [0];
  /** The texts of each state. */
  readonly #from: number[] = [0];
  readonly #to: number[];

  constructor(texts: readonly Uint8Array[]) {
    this.#texts = texts;
    this.#to = [texts.length];
    let levelEnd = 1;
    let depth = 0;
    for (let state = 0; state < this.#labels.length; state++) {
      if (state === levelEnd) {
        depth++;
        levelEnd = this.#labels.length;
      }
      this.#first.push(this.#labels.length);
      if (state > 0) this.#fail.push(this.#failOf(state, depth));
      if (this.#fail[state] !== matchState) this.#addChildren(state, depth);
    }
    this.#first.push(this.#labels.length);
  }

  get count(): number {
    return this.#labels.length;
  }

  copyTo(first: Uint32Array, fail: Uint32Array, labels: Uint8Array): void {
    first.set(this.#first);
    fail.set(this.#fail);
    labels.set(this.#labels);
  }

  /** The state of the longest end of this one that is a state too. A text that ends there ends here. */
  #failOf(state: number, depth: number): number {
    if (this.#texts[this.#from[state]!]!.length === depth) return matchState;
    const byte = this.#labels[state]!;
    let at = this.#parents[state]!;
    while (at !== 0) {
      at = this.#fail[at]!;
      const child = this.#child(at, byte);
      if (child !== 0) return this.#fail[child] === matchState ? matchState : child;
    }
    return 0;
  }

  #child(state: number, byte: number): number {
    let low = this.#first[state]!;
    let high = this.#first[state + 1]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#labels[middle]! < byte) low = middle + 1;
      else high = middle;
    }
    return low < this.#first[state + 1]! && this.#labels[low] === byte ? low : 0;
  }

  #addChildren(state: number, depth: number): void {
    const end = this.#to[state]!;
    let from = this.#from[state]!;
    while (from < end) {
      const byte = this.#texts[from]![depth]!;
      let to = from + 1;
      while (to < end && this.#texts[to]![depth] === byte) to++;
      this.#labels.push(byte);
      this.#parents.push(state);
      this.#from.push(from);
      this.#to.push(to);
      from = to;
    }
  }
}

/**
 * For each of the first bytes two tables of 16: the groups of texts that may have a byte with this low half, and with
 * this high half. A place where some group stands in all tables may be the beginning of a text.
 */
function fillMasks(masks: Uint8Array, sorted: readonly Uint8Array[], ignoreCase: boolean): void {
  for (const [i, text] of sorted.entries()) {
    const bit = 1 << Math.floor((i * buckets) / sorted.length);
    for (let at = 0; at < maskedBytes; at++) {
      const low = at * 32;
      if (at >= text.length) {
        for (let half = 0; half < 32; half++) masks[low + half]! |= bit;
        continue;
      }
      for (const byte of casesOf(text[at]!, ignoreCase)) {
        masks[low + (byte & 15)]! |= bit;
        masks[low + 16 + (byte >> 4)]! |= bit;
      }
    }
  }
}

/** A bit for each two bytes (little endian) that a text may begin with. */
function fillPairs(pairs: Uint8Array, sorted: readonly Uint8Array[], ignoreCase: boolean): void {
  const everyByte = Array.from({ length: 256 }, (_, byte) => byte);
  for (const text of sorted) {
    const seconds = text.length > 1 ? casesOf(text[1]!, ignoreCase) : everyByte;
    for (const byte of casesOf(text[0]!, ignoreCase)) {
      for (const second of seconds) {
        const pair = byte | (second << 8);
        pairs[pair >> 3]! |= 1 << (pair & 7);
      }
    }
  }
}

function casesOf(byte: number, ignoreCase: boolean): readonly number[] {
  return ignoreCase && byte >= 0x61 && byte <= 0x7a ? [byte, byte ^ 0x20] : [byte];
}

function lowerCase(text: Uint8Array): Uint8Array {
  return text.map((byte) => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte));
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
