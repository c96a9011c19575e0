import { type BytesColumn, internal, paddingBytes } from "@skald/model";
import { decodeHybrid } from "../../parquet/hybrid.js";

/** A dictionary of a row group in its file. */
export interface DictionaryPlace {
  /** Of its values. */
  readonly offset: number;
  /** Equal when it is not compressed. */
  readonly storedBytes: number;
  readonly rawBytes: number;
  readonly valueCount: number;
  readonly crc: number;
}

/** Decoded dictionaries that a thread keeps: those of a few columns of the segments that it reads. */
const maxKeptBytes = 16 * 1024 * 1024;

/** Decoded dictionaries by their places, those that were used last. All blocks of a row group share one. */
class KeptDictionaries {
  readonly #kept = new Map<DictionaryPlace, BytesColumn>();
  #bytes = 0;

  has(place: DictionaryPlace): boolean {
    return this.#kept.has(place);
  }

  get(place: DictionaryPlace, read: () => Uint8Array): BytesColumn {
    const known = this.#kept.get(place);
    if (known !== undefined) this.#kept.delete(place);
    else this.#bytes += bytesOf(place);
    const dictionary = known ?? decodeDictionary(read(), place.valueCount);
    this.#kept.set(place, dictionary);
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= maxKeptBytes || oldest === place) break;
      this.#kept.delete(oldest);
      this.#bytes -= bytesOf(oldest);
    }
    return dictionary;
  }
}

function bytesOf({ rawBytes, valueCount }: DictionaryPlace): number {
  return rawBytes + 4 * valueCount + 256;
}

export const dictionaries = new KeptDictionaries();

/** The values of a dictionary page, behind an empty one that stands for none. */
function decodeDictionary(page: Uint8Array, valueCount: number): BytesColumn {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const offsets = new Uint32Array(valueCount + 2);
  const bytes = new Uint8Array(page.byteLength + paddingBytes);
  let from = 0;
  for (let value = 1; value <= valueCount; value++) {
    if (from + 4 > page.byteLength) throw internal("dictionary is cut short");
    const start = from + 4;
    from = start + view.getUint32(start - 4, true);
    if (from > page.byteLength) throw internal("dictionary is cut short");
    bytes.set(page.subarray(start, from), offsets[value]);
    offsets[value + 1] = offsets[value]! + from - start;
  }
  if (from !== page.byteLength) throw internal("dictionary has other values");
  return { bytes, offsets };
}

/** The codes of the rows of a page, from 1; 0 where a row has no value. */
export function decodeCodes(
  { levels, body, values }: { levels: Uint8Array; body: Uint8Array; values: number },
  rowCount: number,
  valueCount: number,
): Uint16Array {
  const codes = new Uint16Array(rowCount);
  // The codes of the values stand last at first, so that they can be moved to their rows.
  const first = rowCount - values;
  decodeHybrid(body.subarray(1), body[0] ?? 0, codes.subarray(first), values);
  let most = 0;
  for (let i = first; i < rowCount; i++) {
    const code = codes[i]! + 1;
    codes[i] = code;
    if (code > most) most = code;
  }
  if (most > valueCount) throw internal(`page has the code ${most - 1} of ${valueCount}`);
  if (first === 0) return codes;
  const present = new Uint8Array(rowCount);
  decodeHybrid(levels, 1, present, rowCount);
  let next = first;
  for (let row = 0; row < rowCount; row++) codes[row] = present[row] === 1 ? codes[next++]! : 0;
  if (next !== rowCount) throw internal(`page has levels of ${next - first} values`);
  return codes;
}
