import { hashRows } from "@skald/kernels";
import type { BytesColumn } from "@skald/model";
import { ThriftWriter } from "./thrift.js";

/** Bits for each value, at least; less than twice as many, since the size is a power of two. */
const minBits = 8;
/** A block has eight words, and a value sets a bit in each. */
const blockWords = 8;
const blockBits = 32 * blockWords;
/** Of the largest filter, 512 KiB. A power of two: some readers take no other sizes. */
const maxBlocks = 2 ** 14;
/** The high bits of a hash that number its block. */
const blockShift = 32 - Math.log2(maxBlocks);

/** Given by the format, as are hash and layout. */
const salts = Uint32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d],
  ...[0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31],
);

/**
 * The split block Bloom filter of a column chunk. It is filled at its largest size, which also counts the different values, and is
 * then halved as far as `minBits` allows. That makes what filling the small one would have made: a block of half as many holds
 * the bits of two neighbours.
 */
export class BloomFilter {
  readonly #words = new Uint32Array(maxBlocks * blockWords);
  #high = new Uint32Array(4096);
  #low = new Uint32Array(4096);
  /** Different values, less the few whose bits others had set. */
  #count = 0;

  /** Adds the values of a column but the empty ones. */
  add({ bytes, offsets }: BytesColumn, rowCount: number): void {
    if (this.#high.length < rowCount) {
      this.#high = new Uint32Array(rowCount * 2);
      this.#low = new Uint32Array(rowCount * 2);
    }
    const [words, high, low] = [this.#words, this.#high, this.#low];
    hashRows(bytes, offsets, rowCount, high, low);
    for (let row = 0; row < rowCount; row++) {
      if (offsets[row] === offsets[row + 1]) continue;
      const hash = low[row]!;
      const at = (high[row]! >>> blockShift) * blockWords;
      let added = 0;
      for (let i = 0; i < blockWords; i++) {
        const bit = 1 << (Math.imul(hash, salts[i]!) >>> 27);
        added |= bit & ~words[at + i]!;
        words[at + i]! |= bit;
      }
      if (added !== 0) this.#count++;
    }
  }

  /** The filter with its header, as it stands in a file; undefined with too many values. Nothing can be added behind. */
  seal(): Uint8Array | undefined {
    const wanted = this.#count * minBits;
    if (wanted > maxBlocks * blockBits) return undefined;
    const words = this.#words;
    let blocks = maxBlocks;
    for (; blocks > 1 && (blocks / 2) * blockBits >= wanted; blocks /= 2)
      for (let at = 0; at < (blocks / 2) * blockWords; at++) {
        const first = at + (at & -blockWords);
        words[at] = words[first]! | words[first + blockWords]!;
      }
    const sizeBytes = (blocks * blockBits) / 8;
    const thrift = new ThriftWriter();
    thrift.i32(1, sizeBytes);
    // The algorithm (split blocks), the hash (XXH64) and the compression (none): unions with an empty struct.
    for (const id of [2, 3, 4]) thrift.struct(id, () => thrift.struct(1, () => undefined));
    thrift.end();
    thrift.out.append(new Uint8Array(words.buffer, 0, sizeBytes));
    return thrift.out.view();
  }

  /** Forgets the values. */
  clear(): void {
    this.#words.fill(0);
    this.#count = 0;
  }
}
