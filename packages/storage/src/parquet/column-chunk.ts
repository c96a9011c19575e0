import { crc32 } from "node:zlib";
import { ByteWriter } from "../bytes.js";
import { minCompressBytes, zstd } from "../zstd.js";
import { codec, encoding, pageType } from "./format.js";
import { ThriftWriter } from "./thrift.js";

/** One data page before it is compressed. */
interface PageInput {
  readonly rowCount: number;
  /** Values and nulls; more than the rows in a repeated column. */
  readonly valueCount: number;
  readonly nullCount: number;
  /** Encoded levels; empty where the column has none. */
  readonly repetition: Uint8Array;
  readonly definition: Uint8Array;
  readonly body: Uint8Array;
}

/** The place and the contents of a page, as the own index keeps them. */
interface PagePlace {
  readonly headerBytes: number;
  readonly levelBytes: number;
  /** Body as stored, and decompressed; equal when it is not compressed. */
  readonly storedBytes: number;
  readonly rawBytes: number;
  /** Values that are not null. */
  readonly valueCount: number;
  readonly nullCount: number;
  readonly rowCount: number;
  /** Of the levels and the stored body. */
  readonly crc: number;
}

/**
 * The pages of one column within a row group, encoded and in memory until the group is written. Data pages are V2 and
 * all have a checksum. The dictionary, if any, is set last and stands first.
 */
export class ColumnChunk {
  readonly pages: PagePlace[] = [];
  readonly dataEncoding: number;
  readonly #level: number;
  /** Headers and levels of all pages, and small bodies. */
  readonly #data = new ByteWriter(4096);
  /** Large bodies, and the places in `#data` where they stand. */
  readonly #bodies: { readonly at: number; readonly bytes: Uint8Array }[] = [];
  #bodyBytes = 0;
  readonly #dictionary = new ByteWriter(64);
  #rawBytes = 0;
  #compressed = false;
  #dictionaryRaw: { bytes: Uint8Array; count: number; sorted: boolean } | undefined;
  #dictionaryPlace: DictionaryPlace | undefined;

  /** Level 0 means that no data page is compressed. */
  constructor(options: { readonly dataEncoding: number; readonly level: number }) {
    this.dataEncoding = options.dataEncoding;
    this.#level = options.level;
  }

  addPage(input: PageInput): void {
    const { body } = input;
    const stored = this.#compress(body);
    const levelBytes = input.repetition.byteLength + input.definition.byteLength;
    const crc = crc32(stored, crc32(input.definition, crc32(input.repetition)));
    const headerAt = this.#data.length;
    writeDataPageHeader(this.#data, input, {
      crc,
      storedBytes: stored.byteLength,
      compressed: stored !== body,
      encoding: this.dataEncoding,
    });
    const headerBytes = this.#data.length - headerAt;
    this.#data.append(input.repetition);
    this.#data.append(input.definition);
    // `compress` gives memory that nobody else uses.
    if (stored !== body && stored.byteLength >= minOwnBytes) {
      this.#bodies.push({ at: this.#data.length, bytes: stored });
      this.#bodyBytes += stored.byteLength;
    } else this.#data.append(stored);
    this.#rawBytes += headerBytes + levelBytes + body.byteLength;
    this.pages.push({
      headerBytes,
      levelBytes,
      storedBytes: stored.byteLength,
      rawBytes: body.byteLength,
      valueCount: input.valueCount - input.nullCount,
      nullCount: input.nullCount,
      rowCount: input.rowCount,
      crc,
    });
  }

  /** Sets the values that the codes of the data pages stand for. */
  setDictionary(values: readonly Uint8Array[], sorted: boolean): void {
    const plain = new ByteWriter(256);
    for (const value of values) plain.bytes(value);
    this.#dictionaryRaw = { bytes: plain.view(), count: values.length, sorted };
  }

  /** Ends the chunk: its bytes in file order, valid until `clear`, and what the footer says of it. */
  seal(): SealedChunk {
    const dictionary = this.#dictionaryRaw;
    if (dictionary !== undefined) this.#sealDictionary(dictionary);
    const data = this.#data.view();
    const parts: Uint8Array[] = [this.#dictionary.view()];
    let from = 0;
    for (const { at, bytes } of this.#bodies) {
      parts.push(data.subarray(from, at), bytes);
      from = at;
    }
    return {
      parts: [...parts, data.subarray(from)],
      dictionaryBytes: this.#dictionary.length,
      storedBytes: this.#dictionary.length + this.storedBytes,
      rawBytes: this.#rawBytes,
      codec: this.#compressed ? codec.zstd : codec.uncompressed,
      dataEncoding: this.dataEncoding,
      pages: this.pages.slice(),
      dictionary: this.#dictionaryPlace,
    };
  }

  /** Bytes of the data pages so far, with their headers. */
  get storedBytes(): number {
    return this.#data.length + this.#bodyBytes;
  }

  /** Forgets the pages and keeps the memory, for the next row group. */
  clear(): void {
    this.pages.length = 0;
    this.#data.clear();
    this.#bodies.length = 0;
    this.#bodyBytes = 0;
    this.#dictionary.clear();
    this.#rawBytes = 0;
    this.#compressed = false;
    this.#dictionaryRaw = undefined;
    this.#dictionaryPlace = undefined;
  }

  #compress(body: Uint8Array): Uint8Array {
    if (this.#level === 0 || body.byteLength < minCompressBytes) return body;
    const stored = zstd.compress(body, this.#level);
    if (stored.byteLength >= body.byteLength) return body;
    this.#compressed = true;
    return stored;
  }

  #sealDictionary(dictionary: { bytes: Uint8Array; count: number; sorted: boolean }): void {
    const { bytes } = dictionary;
    // A dictionary page cannot say that it is not compressed, so it is as soon as the chunk has a codec.
    if (bytes.byteLength > compressDictionaryBytes) this.#compressed = true;
    const stored = this.#compressed ? zstd.compress(bytes, Math.max(this.#level, 1)) : bytes;
    const crc = crc32(stored);
    writeDictionaryPageHeader(this.#dictionary, dictionary, { bytes: stored, crc });
    this.#dictionaryPlace = {
      storedBytes: stored.byteLength,
      rawBytes: bytes.byteLength,
      valueCount: dictionary.count,
      crc,
    };
    this.#rawBytes += this.#dictionary.length + bytes.byteLength;
    this.#dictionary.append(stored);
  }
}

/** Compressed bodies of at least this size are not copied. Smaller ones are: each part of a chunk costs a call to write. */
const minOwnBytes = 16 * 1024;

/** The body of a dictionary page, as the own index keeps it. */
export interface DictionaryPlace {
  /** Equal when it is not compressed. */
  readonly storedBytes: number;
  readonly rawBytes: number;
  readonly valueCount: number;
  readonly crc: number;
}

/** A dictionary above this size is compressed, and with it the chunk. */
export const compressDictionaryBytes = 2048;

export interface SealedChunk {
  readonly parts: readonly Uint8Array[];
  /** Bytes of the dictionary page with its header; 0 without one. */
  readonly dictionaryBytes: number;
  /** Bytes of all pages with their headers, stored and decompressed. */
  readonly storedBytes: number;
  readonly rawBytes: number;
  readonly codec: number;
  readonly dataEncoding: number;
  readonly pages: readonly PagePlace[];
  readonly dictionary?: DictionaryPlace | undefined;
}

function writeDataPageHeader(
  out: ByteWriter,
  input: PageInput,
  stored: { crc: number; storedBytes: number; compressed: boolean; encoding: number },
): void {
  const thrift = new ThriftWriter(out);
  const levelBytes = input.repetition.byteLength + input.definition.byteLength;
  thrift.i32(1, pageType.dataV2);
  thrift.i32(2, levelBytes + input.body.byteLength);
  thrift.i32(3, levelBytes + stored.storedBytes);
  thrift.i32(4, stored.crc | 0);
  thrift.struct(8, () => {
    thrift.i32(1, input.valueCount);
    thrift.i32(2, input.nullCount);
    thrift.i32(3, input.rowCount);
    thrift.i32(4, stored.encoding);
    thrift.i32(5, input.definition.byteLength);
    thrift.i32(6, input.repetition.byteLength);
    thrift.bool(7, stored.compressed);
  });
  thrift.end();
}

function writeDictionaryPageHeader(
  out: ByteWriter,
  dictionary: { bytes: Uint8Array; count: number; sorted: boolean },
  { bytes, crc }: { readonly bytes: Uint8Array; readonly crc: number },
): void {
  const thrift = new ThriftWriter(out);
  thrift.i32(1, pageType.dictionary);
  thrift.i32(2, dictionary.bytes.byteLength);
  thrift.i32(3, bytes.byteLength);
  thrift.i32(4, crc | 0);
  thrift.struct(7, () => {
    thrift.i32(1, dictionary.count);
    thrift.i32(2, encoding.plain);
    thrift.bool(3, dictionary.sorted);
  });
  thrift.end();
}
