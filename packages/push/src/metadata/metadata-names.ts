import type { RawPush } from "@skald/kernels";
import { invalidArgument, tooLarge } from "@skald/model";
import { ByteCache, equalBytes, hashBytes } from "./byte-cache.js";

/** The names of the structured metadata of a push: a name per distinct byte string, and which one each pair has. */
export interface MetadataNames {
  /** Index into `raw` and `names` of each pair. */
  readonly ofPair: Uint32Array;
  /** Names as pushed. */
  readonly raw: readonly string[];
  /** Names as stored; two raw names may be stored under one. */
  readonly names: readonly string[];
}

/** Distinct names in one push beyond this are refused: names are a schema, not data. */
export const maxMetadataNames = 64 * 1024;

/**
 * Finds the distinct metadata names of a push and sanitises each once. Rows of a push mostly repeat the names of the row
 * before, so a pair is compared with its neighbour there before anything is hashed. Throws invalid_argument for a
 * name of which nothing would be left. Yields where other work may go first; `runSteps` runs it at once.
 */
export function* resolveMetadataNames(push: RawPush): Generator<void, MetadataNames> {
  if (push.pairCount === 0) return noNames;
  const resolver = new NameResolver(push);
  for (let row = 0; row < push.rowCount; row += rowsPerStep) {
    resolver.readRows(row, Math.min(push.rowCount, row + rowsPerStep));
    if (row + rowsPerStep < push.rowCount) yield;
  }
  return resolver.finish();
}

const rowsPerStep = 8192;
const noNames: MetadataNames = { ofPair: new Uint32Array(0), raw: [], names: [] };
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

class NameResolver {
  readonly #push: RawPush;
  readonly #ofPair: Uint32Array;
  readonly #table: NameTable;
  /** Pairs of the last row that had any. */
  #width = 0;

  constructor(push: RawPush) {
    this.#push = push;
    this.#ofPair = new Uint32Array(push.pairCount);
    this.#table = new NameTable(push.bytes);
  }

  readRows(from: number, to: number): void {
    const { bytes, metaStart, metaNameStart, metaNameLength } = this.#push;
    const ofPair = this.#ofPair;
    let width = this.#width;
    for (let row = from; row < to; row++) {
      const start = metaStart[row]!;
      const end = metaStart[row + 1]!;
      for (let pair = start; pair < end; pair++) {
        const at = metaNameStart[pair]!;
        const length = metaNameLength[pair]!;
        const guess = pair - width;
        ofPair[pair] =
          pair - start < width &&
          metaNameLength[guess] === length &&
          (metaNameStart[guess] === at ||
            equalBytes(bytes, metaNameStart[guess]!, bytes, at, length))
            ? ofPair[guess]!
            : this.#table.indexOf(at, length);
      }
      if (end > start) width = end - start;
    }
    this.#width = width;
  }

  finish(): MetadataNames {
    return { ofPair: this.#ofPair, raw: this.#table.raw, names: this.#table.names };
  }
}

/** Byte strings numbered in order of first appearance. */
class NameTable {
  readonly raw: string[] = [];
  readonly names: string[] = [];
  readonly #bytes: Uint8Array;
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  readonly #byHash = new Map<number, number>();
  /** Names that lost their hash to another one: keyed by text, because JavaScript seeds the hashes of strings. */
  #collided: Map<string, number> | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  indexOf(start: number, length: number): number {
    const hash = hashBytes(this.#bytes, start, length);
    const known = this.#byHash.get(hash);
    if (known === undefined) {
      this.#byHash.set(hash, this.names.length);
      return this.#add(start, length);
    }
    if (
      this.#lengths[known] === length &&
      equalBytes(this.#bytes, this.#starts[known]!, this.#bytes, start, length)
    ) {
      return known;
    }
    const key = Buffer.from(this.#bytes.subarray(start, start + length)).toString("latin1");
    const index = this.#collided?.get(key) ?? this.#add(start, length);
    this.#collided ??= new Map();
    this.#collided.set(key, index);
    return index;
  }

  #add(start: number, length: number): number {
    const { raw, name } = nameAt(this.#bytes, start, length);
    if (name === undefined) {
      throw invalidArgument(
        `structured metadata name '${raw.slice(0, 64)}' has no letter or digit to make a label name from`,
      );
    }
    if (this.names.length === maxMetadataNames) {
      throw tooLarge(`push has more than ${maxMetadataNames} structured metadata names`);
    }
    this.raw.push(raw);
    this.names.push(name);
    this.#starts.push(start);
    this.#lengths.push(length);
    return this.names.length - 1;
  }
}

/** A name as pushed, and as stored. */
interface KnownName {
  readonly raw: string;
  readonly name: string | undefined;
}

/** Names are few, and in each push again. */
const knownNames = new ByteCache<KnownName>({ maxEntries: 16 * 1024, maxKeyBytes: 1024 * 1024 });
const anyPush = {};

function nameAt(bytes: Uint8Array, start: number, length: number): KnownName {
  const known = knownNames.get(anyPush, bytes, start, length);
  if (known !== undefined) return known;
  const raw = utf8.decode(bytes.subarray(start, start + length));
  const made = { raw, name: sanitiseLabelName(raw) };
  knownNames.set(anyPush, bytes, start, length, made);
  return made;
}

/**
 * Turns an attribute name into a label name, as for OTLP: every character but ASCII letters and digits becomes `_`, runs
 * of them one; a leading digit gets the prefix `key_`; `__x__` keeps its double underscores. Undefined when nothing
 * but underscores would be left.
 */
export function sanitiseLabelName(name: string): string | undefined {
  const reserved = /^__(.+)__$/su.exec(name);
  const middle = (reserved?.[1] ?? name).replace(/[^a-zA-Z0-9]+/gu, "_");
  const clean = reserved === null ? middle : `__${middle}__`;
  if (/^_*$/.test(clean)) return undefined;
  return /^[0-9]/.test(clean) ? `key_${clean}` : clean;
}
