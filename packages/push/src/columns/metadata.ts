import { equalBytes, type RawPush } from "@skald/kernels";
import {
  type Batch,
  detectedLevelName,
  fnv1aBytes,
  invalidArgument,
  levelInMetadata,
  tooLarge,
} from "@skald/model";
import { ByteCache } from "./byte-cache.js";

/** The distinct names of the structured metadata of a push, and which of them each pair has. */
export interface MetadataNames {
  /** Index into `raw` and `names` of each pair. */
  readonly ofPair: Uint32Array;
  /** Names as pushed. */
  readonly raw: readonly string[];
  /** Names as stored; two raw names may be stored under one. */
  readonly names: readonly string[];
}

/** A push with more distinct names is refused: names are a schema, not data. */
const maxMetadataNames = 64 * 1024;

/**
 * Finds the distinct metadata names of a push and sanitises each once. Rows of a push mostly repeat the names of the row
 * before, so a pair is compared with its neighbour there before anything is hashed. Throws invalid_argument for a
 * name that has no letter or digit. Yields where other work may run first.
 */
export function* resolveMetadataNames(push: RawPush): Generator<void, MetadataNames> {
  if (push.pairCount === 0) return noNames;
  const table = new NameTable(push);
  while (!table.readSome()) yield;
  return { ofPair: table.ofPair, raw: table.raw, names: table.names };
}

const rowsPerStep = 8192;
/** Pairs whose name was not that of their neighbour, of which a step looks up this many: new ones take 4 us each. */
const lookupsPerStep = 512;
/** Names that a step sorts, and pairs that it copies. */
const namesPerStep = 1024;
const pairsPerStep = 8192;
const noNames: MetadataNames = { ofPair: new Uint32Array(0), raw: [], names: [] };

/** Numbers the names of a push in order of first appearance. */
class NameTable {
  readonly ofPair: Uint32Array;
  readonly raw: string[] = [];
  readonly names: string[] = [];
  readonly #push: RawPush;
  /** The next row and, if it was read in part, its next pair. */
  #row = 0;
  #pair = 0;
  /** Number of pairs of the last row that had any. */
  #width = 0;
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  readonly #byHash = new Map<number, number>();
  /** Names whose hash another name has, by their text, because JavaScript seeds the hashes of strings. */
  #collided: Map<string, number> | undefined;

  constructor(push: RawPush) {
    this.#push = push;
    this.ofPair = new Uint32Array(push.pairCount);
  }

  /** Reads the next rows or, of rows with many new names, the next pairs; true after the last. */
  readSome(): boolean {
    const { bytes, rowCount, metaStart, metaNameStart, metaNameLength } = this.#push;
    const { ofPair } = this;
    const to = Math.min(rowCount, this.#row + rowsPerStep);
    let width = this.#width;
    let lookups = 0;
    for (let row = this.#row; row < to; row++) {
      const start = metaStart[row]!;
      const end = metaStart[row + 1]!;
      for (let pair = Math.max(start, this.#pair); pair < end; pair++) {
        const at = metaNameStart[pair]!;
        const length = metaNameLength[pair]!;
        const guess = pair - width;
        if (
          pair - start < width &&
          metaNameLength[guess] === length &&
          (metaNameStart[guess] === at ||
            equalBytes(bytes, metaNameStart[guess]!, bytes, at, length))
        ) {
          ofPair[pair] = ofPair[guess]!;
          continue;
        }
        if (lookups++ === lookupsPerStep) {
          this.#row = row;
          this.#pair = pair;
          this.#width = width;
          return false;
        }
        ofPair[pair] = this.#indexOf(at, length);
      }
      if (end > start) width = end - start;
    }
    this.#row = to;
    this.#width = width;
    return to === rowCount;
  }

  #indexOf(start: number, length: number): number {
    const { bytes } = this.#push;
    const hash = fnv1aBytes(bytes, start, start + length);
    const known = this.#byHash.get(hash);
    if (known === undefined) {
      this.#byHash.set(hash, this.names.length);
      return this.#add(start, length);
    }
    const isSame =
      this.#lengths[known] === length &&
      equalBytes(bytes, this.#starts[known]!, bytes, start, length);
    if (isSame) return known;
    const key = Buffer.from(bytes.subarray(start, start + length)).toString("latin1");
    const index = this.#collided?.get(key) ?? this.#add(start, length);
    this.#collided ??= new Map();
    this.#collided.set(key, index);
    return index;
  }

  #add(start: number, length: number): number {
    const { raw, name } = nameAt(this.#push.bytes, start, length);
    if (name === undefined) {
      throw invalidArgument(
        `structured metadata name '${raw.slice(0, 64)}' has no letter or digit to make a label name from`,
      );
    }
    if (this.names.length === maxMetadataNames) {
      throw tooLarge(`push has more than ${maxMetadataNames} structured metadata names`);
    }
    this.raw.push(raw);
    this.#starts.push(start);
    this.#lengths.push(length);
    return this.names.push(name) - 1;
  }
}

/** A name as pushed, and as stored. */
interface KnownName {
  readonly raw: string;
  readonly name: string | undefined;
}

/** Names are few and every push repeats them. */
const knownNames = new ByteCache<KnownName>({ maxEntries: 16 * 1024, maxKeyBytes: 1024 * 1024 });
const anyPush = {};
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

function nameAt(bytes: Uint8Array, start: number, length: number): KnownName {
  const known = knownNames.get(anyPush, bytes, start, length);
  if (known !== undefined) return known;
  const raw = utf8.decode(bytes.subarray(start, start + length));
  const made = { raw, name: sanitiseLabelName(raw) };
  knownNames.set(anyPush, bytes, start, length, made);
  return made;
}

/**
 * Turns an attribute name into a label name, as Loki does for OTLP: each run of characters that are no ASCII letters or
 * digits becomes `_`; a leading digit gets the prefix `key_`; `__x__` keeps its double underscores. Returns undefined
 * when only underscores would be left.
 */
export function sanitiseLabelName(name: string): string | undefined {
  const reserved = /^__(.+)__$/su.exec(name);
  const middle = (reserved?.[1] ?? name).replace(/[^a-zA-Z0-9]+/gu, "_");
  const clean = reserved === null ? middle : `__${middle}__`;
  if (/^_*$/.test(clean)) return undefined;
  return /^[0-9]/.test(clean) ? `key_${clean}` : clean;
}

type BatchMetadata = Pick<
  Batch,
  "metaStart" | "metaName" | "metaValueStart" | "metaValueLength" | "metaNames"
>;

/**
 * Builds the metadata columns of a batch from the pairs of the rows that are left, under the names that are stored. The
 * pairs of a row are sorted by name, because rows with the same pairs in another order are equal.
 */
export function* assembleMetadata(
  raw: RawPush,
  names: MetadataNames,
  kept: Uint32Array | undefined,
  levels: Uint8Array,
): Generator<void, BatchMetadata> {
  if (raw.pairCount === 0) {
    // All starts are 0.
    return { ...noMetadata, metaStart: raw.metaStart.subarray(0, levels.length + 1) };
  }
  const columns = new PairColumns(raw, names, yield* ranksOf(names.names));
  const metaStart = new Uint32Array(levels.length + 1);
  let nextStep = pairsPerStep;
  for (let row = 0; row < levels.length; row++) {
    const code = levels[row]!;
    columns.copyRow(kept === undefined ? row : kept[row]!, code !== 0 && code !== levelInMetadata);
    metaStart[row + 1] = columns.count;
    if (columns.count < nextStep && row % rowsPerStep !== rowsPerStep - 1) continue;
    nextStep = columns.count + pairsPerStep;
    yield;
  }
  return { metaStart, ...columns.finish() };
}

const empty = new Uint32Array(0);
const noMetadata = {
  metaName: empty,
  metaValueStart: empty,
  metaValueLength: empty,
  metaNames: [],
};

/** Copies pairs row by row and sorts those of each row by name; a name gets its number with its first pair. */
class PairColumns {
  count = 0;
  readonly #raw: RawPush;
  readonly #names: MetadataNames;
  readonly #name: Uint32Array;
  readonly #valueStart: Uint32Array;
  readonly #valueLength: Uint32Array;
  readonly #stored: string[] = [];
  /** By index of `names`: the number plus one, 0 before the first pair. */
  readonly #numberOf: Uint32Array;
  /** By index of `names`, and by number: the rank among the sorted names of the push. */
  readonly #rankOf: Uint32Array;
  readonly #ranks: number[] = [];
  /** By rank: the number plus one, 0 before the first pair. */
  readonly #numberOfRank: Uint32Array;

  constructor(raw: RawPush, names: MetadataNames, rankOf: Uint32Array) {
    this.#raw = raw;
    this.#names = names;
    this.#rankOf = rankOf;
    const { pairCount } = raw;
    const columns = new ArrayBuffer(12 * pairCount);
    this.#name = new Uint32Array(columns, 0, pairCount);
    this.#valueStart = new Uint32Array(columns, 4 * pairCount, pairCount);
    this.#valueLength = new Uint32Array(columns, 8 * pairCount, pairCount);
    this.#numberOf = new Uint32Array(names.names.length);
    this.#numberOfRank = new Uint32Array(names.names.length);
  }

  copyRow(row: number, dropLevel: boolean): void {
    const { metaStart, metaValueStart, metaValueLength, bytes } = this.#raw;
    const first = this.count;
    const end = metaStart[row + 1]!;
    let isSorted = true;
    let rankBefore = -1;
    for (let pair = metaStart[row]!; pair < end; pair++) {
      const length = metaValueLength[pair]!;
      if (length === 0) continue;
      const name = this.#names.ofPair[pair]!;
      if (dropLevel && this.#names.names[name] === detectedLevelName) continue;
      const number = this.#numberOf[name]! > 0 ? this.#numberOf[name]! - 1 : this.#add(name);
      const start = metaValueStart[pair]!;
      if (!isAscii(bytes, start, length)) blankInvalidUtf8(bytes, start, length);
      const rank = this.#ranks[number]!;
      if (rank <= rankBefore) isSorted = false;
      rankBefore = rank;
      this.#put(this.count++, number, start, length);
    }
    if (isSorted) return;
    if (this.count - first > maxInsertedPairs) this.#sortWide(first);
    else this.#sort(first);
  }

  finish(): Omit<BatchMetadata, "metaStart"> {
    return {
      metaName: this.#name.subarray(0, this.count),
      metaValueStart: this.#valueStart.subarray(0, this.count),
      metaValueLength: this.#valueLength.subarray(0, this.count),
      metaNames: this.#stored,
    };
  }

  #put(at: number, number: number, start: number, length: number): void {
    this.#name[at] = number;
    this.#valueStart[at] = start;
    this.#valueLength[at] = length;
  }

  /** Sorts the pairs from `first` on by insertion; when a name comes twice, its last value stays. */
  #sort(first: number): void {
    const end = this.count;
    let count = first;
    for (let pair = first; pair < end; pair++) {
      const number = this.#name[pair]!;
      const start = this.#valueStart[pair]!;
      const length = this.#valueLength[pair]!;
      const rank = this.#ranks[number]!;
      let at = count;
      while (at > first && this.#ranks[this.#name[at - 1]!]! > rank) at--;
      if (at > first && this.#name[at - 1] === number) {
        this.#put(at - 1, number, start, length);
        continue;
      }
      for (let to = count++; to > at; to--) {
        this.#put(to, this.#name[to - 1]!, this.#valueStart[to - 1]!, this.#valueLength[to - 1]!);
      }
      this.#put(at, number, start, length);
    }
    this.count = count;
  }

  /** Does the same for a row with many pairs, where insertion would take long. */
  #sortWide(first: number): void {
    const pairs = Array.from({ length: this.count - first }, (_, i) => ({
      number: this.#name[first + i]!,
      start: this.#valueStart[first + i]!,
      length: this.#valueLength[first + i]!,
    }));
    pairs.sort((a, b) => this.#ranks[a.number]! - this.#ranks[b.number]!);
    this.count = first;
    for (const [i, { number, start, length }] of pairs.entries()) {
      if (pairs[i + 1]?.number !== number) this.#put(this.count++, number, start, length);
    }
  }

  #add(name: number): number {
    // Equal names share a rank, and so a number.
    const rank = this.#rankOf[name]!;
    let number = this.#numberOfRank[rank]! - 1;
    if (number < 0) {
      number = this.#stored.length;
      this.#stored.push(this.#names.names[name]!);
      this.#numberOfRank[rank] = number + 1;
      this.#ranks.push(rank);
    }
    this.#numberOf[name] = number + 1;
    return number;
  }
}

/** Rows of more pairs are sorted as a whole. */
const maxInsertedPairs = 64;

/** The rank of each name when all are sorted; equal names share one. Yields where other work may run first. */
function* ranksOf(names: readonly string[]): Generator<void, Uint32Array> {
  if (names.length <= maxComparedNames) return comparedRanksOf(names);
  const order = yield* sortedOrder(names);
  const ranks = new Uint32Array(names.length);
  let rank = 0;
  for (let i = 1; i < order.length; i++) {
    if (names[order[i]!] !== names[order[i - 1]!]) rank++;
    ranks[order[i]!] = rank;
  }
  return ranks;
}

/** The indexes of names, sorted by name: sorts runs and merges them, with a pause between two steps. */
function* sortedOrder(names: readonly string[]): Generator<void, Uint32Array> {
  const count = names.length;
  let order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let from = 0; from < count; from += namesPerStep) {
    order.subarray(from, from + namesPerStep).sort((a, b) => (names[a]! < names[b]! ? -1 : 1));
    if (count > namesPerStep) yield;
  }
  for (let width = namesPerStep; width < count; width *= 2) {
    const merged = new Uint32Array(count);
    for (let to = 0; to < count; ) {
      let left = to;
      let right = Math.min(to + width, count);
      const leftEnd = right;
      const rightEnd = Math.min(to + 2 * width, count);
      for (; to < rightEnd; to++) {
        const isLeft =
          right === rightEnd || (left < leftEnd && names[order[left]!]! <= names[order[right]!]!);
        merged[to] = order[isLeft ? left++ : right++]!;
        if (to % pairsPerStep === pairsPerStep - 1) yield;
      }
    }
    order = merged;
  }
  return order;
}

/** Up to this many names, comparing each with each is faster than sorting. */
const maxComparedNames = 12;

function comparedRanksOf(names: readonly string[]): Uint32Array {
  const ranks = new Uint32Array(names.length);
  for (let i = 0; i < names.length; i++) {
    let rank = 0;
    // The smaller names count; of equal ones only the last does.
    for (let j = 0; j < names.length; j++) {
      if (names[j]! < names[i]! && names.indexOf(names[j]!, j + 1) < 0) rank++;
    }
    ranks[i] = rank;
  }
  return ranks;
}

function isAscii(bytes: Uint8Array, start: number, length: number): boolean {
  let seen = 0;
  for (let i = start; i < start + length; i++) seen |= bytes[i]!;
  return seen < 0x80;
}

/** Overwrites each byte of a range that is not part of valid UTF-8 with a space; the length stays. */
export function blankInvalidUtf8(bytes: Uint8Array, start: number, length: number): void {
  const end = start + length;
  let at = start;
  while (at < end) {
    if (bytes[at]! < 0x80) {
      at++;
      continue;
    }
    const width = sequenceLength(bytes, at, end);
    if (width === 0) bytes[at] = 0x20;
    at += width === 0 ? 1 : width;
  }
}

/** Bytes of the character that begins with the non-ASCII byte at `at`; 0 when it is not valid UTF-8. */
export function sequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at]!;
  const width = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (width === 0 || at + width > end) return 0;
  const second = bytes[at + 1]!;
  const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let i = 2; i < width; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return width;
}
