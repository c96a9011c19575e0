import type { BytesColumn } from "@skald/model";
import { ByteWriter } from "../../bytes.js";
import { BloomFilter } from "../../parquet/bloom-filter.js";
import { ColumnChunk, type SealedChunk } from "../../parquet/column-chunk.js";
import type { Bounds } from "../../parquet/footer.js";
import { encoding } from "../../parquet/format.js";
import { bitWidth, encodeHybrid, encodeRun } from "../../parquet/hybrid.js";
import { ValueBounds } from "../../parquet/statistics.js";
import { spread } from "../spread.js";
import { areUtf8, BytesColumnWriter } from "./columns.js";
import { ValueTable } from "./value-table.js";

/** With more values than this share of its rows, a dictionary saves nothing. */
const maxValueShare = 1 / 2;

/**
 * Where more than 95 % of the first 2,048 values or more are different, a row group has too many of them for a dictionary: of 2,048
 * values drawn from 16,384 some 6 % come again.
 */
const idShare = 0.95;
const minIds = 2048;

/** The rows of a block: their codes, from 1; 0 where a row has no value. */
interface CodedBlock {
  readonly rowCount: number;
  /** Undefined for a block without values. */
  readonly codes: Uint16Array | undefined;
}

/** What a row group has of a column. */
interface SealedTexts {
  readonly chunk: SealedChunk;
  readonly bounds: Bounds | undefined;
  /** The filter of a column without a dictionary there. */
  readonly bloom: Uint8Array | undefined;
}

/**
 * A column of texts, where an empty one is a null: pages of codes with a dictionary for the row group, or, where the values are too
 * many, pages of values. Holds two bytes a row of the blocks that have values.
 */
export class TextColumnWriter {
  readonly #coded = new ColumnChunk({ dataEncoding: encoding.rleDictionary, level: 0 });
  readonly #plain: BytesColumnWriter;
  readonly #hasBloom: boolean;
  readonly #values = new ValueTable();
  readonly #blocks: CodedBlock[] = [];
  readonly #bounds = new ValueBounds();
  readonly #definition = new ByteWriter(64);
  readonly #body = new ByteWriter(256);
  #present = new Uint8Array(4096);
  #codes = new Uint16Array(4096);
  /** Rows with a value. */
  #valueCount = 0;
  #isPlain = false;
  /** Of row groups without a dictionary. */
  #bloom: BloomFilter | undefined;
  #hasUtf8Codes = true;

  /** The level of zstd, and filters, are for values that are in no dictionary. */
  constructor({ level, hasBloom }: { readonly level: number; readonly hasBloom: boolean }) {
    this.#hasBloom = hasBloom;
    this.#plain = new BytesColumnWriter({ level, optional: true });
  }

  /** False once some value of a row group was not UTF-8. */
  get utf8(): boolean {
    return this.#plain.utf8 && this.#hasUtf8Codes;
  }

  /** Adds the rows of a block; an absent column is all nulls. */
  addBlock(column: BytesColumn | undefined, rowCount: number): void {
    if (!this.#isPlain && (this.#areIds() || !this.#addCodes(column, rowCount)))
      this.#becomePlain();
    if (!this.#isPlain) return;
    this.#plain.addBlock(column, rowCount);
    if (column !== undefined) this.#bloom?.add(column, rowCount);
  }

  /** About what the row group takes in the file so far. */
  get storedBytes(): number {
    if (this.#isPlain) return this.#plain.chunk.storedBytes;
    const { count, byteCount } = this.#values;
    return Math.ceil((this.#valueCount * bitWidth(count)) / 8) + byteCount;
  }

  /** Ends the row group. The result is valid until `clear`. */
  seal(): SealedTexts {
    if (!this.#isPlain && this.#values.count > this.#valueCount * maxValueShare)
      this.#becomePlain();
    // A row group without a value needs no dictionary.
    if (!this.#isPlain && this.#values.count === 0) this.#becomePlain();
    if (this.#isPlain)
      return {
        chunk: this.#plain.chunk.seal(),
        bounds: this.#plain.bounds,
        bloom: this.#bloom?.seal(),
      };
    for (const block of this.#blocks) this.#encode(block);
    const { count, bytes, offsets } = this.#values;
    const valueAt = (_: unknown, i: number) => bytes.subarray(offsets[i + 1], offsets[i + 2]);
    const values = Array.from({ length: count }, valueAt);
    const lengths = values.map(({ length }) => length);
    this.#coded.setDictionary(values, false);
    this.#bounds.add(bytes, lengths, count);
    this.#hasUtf8Codes &&= areUtf8(bytes.subarray(0, offsets[count + 1]), lengths, count);
    return { chunk: this.#coded.seal(), bounds: this.#bounds.bounds, bloom: undefined };
  }

  /** Forgets everything, for the next row group. */
  clear(): void {
    this.#coded.clear();
    this.#plain.clear();
    this.#values.clear();
    this.#bounds.clear();
    if (this.#isPlain) this.#bloom?.clear();
    this.#blocks.length = 0;
    this.#valueCount = 0;
    this.#isPlain = false;
  }

  /** False when the dictionary is full. */
  #addCodes(column: BytesColumn | undefined, rowCount: number): boolean {
    if (column === undefined) {
      this.#blocks.push({ rowCount, codes: undefined });
      return true;
    }
    const { bytes, offsets } = column;
    const codes = new Uint16Array(rowCount);
    let count = 0;
    for (let row = 0; row < rowCount; row++) {
      const start = offsets[row]!;
      const end = offsets[row + 1]!;
      if (start === end) continue;
      const code = this.#values.codeOf(bytes, start, end);
      if (code === 0) return false;
      codes[row] = code;
      count++;
    }
    this.#blocks.push({ rowCount, codes });
    this.#valueCount += count;
    return true;
  }

  /** Whether the dictionary will be full. */
  #areIds(): boolean {
    return this.#valueCount >= minIds && this.#values.count > this.#valueCount * idShare;
  }

  #becomePlain(): void {
    this.#isPlain = true;
    if (this.#hasBloom) this.#bloom ??= new BloomFilter();
    this.#bloom?.add(this.#values, this.#values.count + 1);
    for (const { rowCount, codes } of this.#blocks)
      this.#plain.addBlock(codes && spread({ codes, dictionary: this.#values }), rowCount);
    this.#blocks.length = 0;
  }

  #encode({ rowCount, codes }: CodedBlock): void {
    const count = codes === undefined ? 0 : this.#measure(codes);
    this.#definition.clear();
    this.#body.clear();
    if (count === 0 || count === rowCount) {
      encodeRun(this.#definition, count === 0 ? 0 : 1, rowCount, 1);
    } else encodeHybrid(this.#definition, this.#present, rowCount, 1);
    let most = 0;
    for (let i = 0; i < count; i++) most = Math.max(most, this.#codes[i]!);
    const width = bitWidth(most);
    this.#body.u8(width);
    encodeHybrid(this.#body, this.#codes, count, width);
    this.#coded.addPage({
      rowCount,
      valueCount: rowCount,
      nullCount: rowCount - count,
      repetition: noLevels,
      definition: this.#definition.view(),
      body: this.#body.view(),
    });
  }

  /** Fills the levels, and the codes of the rows with a value, from 0; answers how many those are. */
  #measure(codes: Uint16Array): number {
    if (this.#codes.length < codes.length) {
      this.#codes = new Uint16Array(codes.length * 2);
      this.#present = new Uint8Array(codes.length * 2);
    }
    let count = 0;
    for (let row = 0; row < codes.length; row++) {
      const code = codes[row]!;
      this.#present[row] = code === 0 ? 0 : 1;
      if (code > 0) this.#codes[count++] = code - 1;
    }
    return count;
  }
}

const noLevels = new Uint8Array(0);
