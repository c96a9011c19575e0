import {
  type Batch,
  detectedLevelName,
  formatLabels,
  type Labels,
  levelInMetadata,
  levelNames,
  paddingBytes,
} from "@skald/model";
import { Cursor, crc32c, damaged, unsupported } from "./bytes.js";
import { decoderOf } from "./compression.js";

const magic = 0x012ee56a;
const chunkVersion = 4;
/** Offsets and lengths of the symbols and of the table of blocks. */
const tailBytes = 32;
const checksumBytes = 4;
/** Symbols and blocks that inflate to more than this are refused; Loki cuts a block at 256 KiB and its longest line. */
const maxInflatedBytes = 256 * 1024 * 1024;

/** Times that are wanted of a chunk, ns since the epoch: `[fromNs, toNs)`. */
export interface ChunkRange {
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** A block of a chunk, as its table says. */
interface BlockPlace {
  readonly rows: number;
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly offset: number;
  readonly length: number;
}

/**
 * Reads the rows of a chunk of Loki in some range, as a batch of one stream. The object has a header in JSON, of which
 * nothing is needed, and a chunk of format 4: symbols for structured metadata, blocks of rows, the table of the blocks.
 * Each part has a checksum. Throws for damage, and for a format that schema v13 does not have.
 */
export function readChunk(
  object: Uint8Array,
  labels: Labels,
  range: ChunkRange,
  name: string,
): Batch {
  const header = new Cursor(object, name);
  header.take(header.u32() - 4);
  const chunk = header.take(header.u32());
  const cursor = new Cursor(chunk, name);
  if (cursor.u32() !== magic) throw damaged(name, "it is no chunk of lines");
  const version = cursor.byte();
  if (version !== chunkVersion)
    throw unsupported(
      name,
      `chunk format ${version}; only schema v13 is read (format ${chunkVersion})`,
    );
  const decode = decoderOf(cursor.byte(), name);
  const tail = new Cursor(chunk, name, Math.max(0, chunk.length - tailBytes));
  const [symbolBytes, symbolsAt, tableBytes, tableAt] = Array.from({ length: 4 }, () =>
    tail.offset(),
  ) as [number, number, number, number];
  const checked = (at: number, length: number): Uint8Array => {
    const part = new Cursor(chunk, name, at);
    const bytes = part.take(length);
    if (part.u32() !== crc32c(bytes))
      throw damaged(name, `the checksum at byte ${part.at - checksumBytes} is wrong`);
    return bytes;
  };
  const rows = new RowReader(labels, range, name);
  rows.readSymbols(checked(symbolsAt, symbolBytes), decode);
  for (const place of readTable(new Cursor(checked(tableAt, tableBytes), name))) {
    if (place.maxNs < range.fromNs || place.minNs >= range.toNs) continue;
    const block = decode(checked(place.offset, place.length), maxInflatedBytes);
    rows.readBlock(block, place.rows);
  }
  return rows.batch();
}

function readTable(cursor: Cursor): BlockPlace[] {
  return Array.from({ length: cursor.uvarint() }, () => {
    const place = {
      rows: cursor.uvarint(),
      minNs: cursor.varint(),
      maxNs: cursor.varint(),
      offset: cursor.uvarint(),
    };
    // The size of the lines, which is not that of the inflated block.
    cursor.uvarint();
    return { ...place, length: cursor.uvarint() };
  });
}

const nsPerSecond = 1_000_000_000n;

/** Gathers rows as the columns of a batch. */
class RowReader {
  readonly #labels: Labels;
  readonly #range: ChunkRange;
  readonly #name: string;
  readonly #parts: Uint8Array[] = [];
  #size = 0;
  /** Texts of names and values of metadata, and where their bytes lie. */
  readonly #symbols: { readonly text: string; readonly start: number; readonly length: number }[] =
    [];
  readonly #seconds: number[] = [];
  readonly #nanos: number[] = [];
  readonly #lineStart: number[] = [];
  readonly #lineLength: number[] = [];
  readonly #levels: number[] = [];
  readonly #metaStart: number[] = [0];
  readonly #metaName: number[] = [];
  readonly #metaValue: number[] = [];
  readonly #metaNames: string[] = [];
  readonly #metaNumbers = new Map<number, number>();
  #lineBytes = 0;

  constructor(labels: Labels, range: ChunkRange, name: string) {
    this.#labels = labels;
    this.#range = range;
    this.#name = name;
  }

  readSymbols(section: Uint8Array, decode: ReturnType<typeof decoderOf>): void {
    const cursor = new Cursor(section, this.#name);
    const count = cursor.uvarint();
    if (count === 0) return;
    const texts = decode(section.subarray(cursor.at), maxInflatedBytes);
    const symbols = new Cursor(texts, this.#name);
    while (this.#symbols.length < count) {
      const length = symbols.uvarint();
      const start = symbols.at;
      const text = Buffer.from(symbols.take(length)).toString();
      this.#symbols.push({ text, start, length });
    }
    this.#add(texts);
  }

  readBlock(block: Uint8Array, rows: number): void {
    const base = this.#size;
    this.#add(block);
    const cursor = new Cursor(block, this.#name);
    const { fromNs, toNs } = this.#range;
    for (let row = 0; row < rows; row++) {
      const ns = cursor.varint();
      const length = cursor.uvarint();
      const start = cursor.at;
      cursor.take(length);
      const metadata = cursor.uvarint();
      const end = cursor.at + metadata;
      if (ns >= fromNs && ns < toNs) {
        this.#seconds.push(Number(ns / nsPerSecond));
        this.#nanos.push(Number(ns % nsPerSecond));
        this.#lineStart.push(base + start);
        this.#lineLength.push(length);
        this.#lineBytes += length;
        this.#readMetadata(cursor);
      }
      cursor.at = end;
    }
  }

  batch(): Batch {
    const rowCount = this.#seconds.length;
    const bytes = new Uint8Array(this.#size + paddingBytes);
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part, at);
      at += part.length;
    }
    const labels = this.#labels;
    const stream = {
      labels,
      text: formatLabels(labels),
      ordinal: 0,
      rowStart: 0,
      rowEnd: rowCount,
    };
    const values = this.#metaValue.map((symbol) => this.#symbols[symbol]!);
    return {
      rowCount,
      streams: [stream],
      seconds: Float64Array.from(this.#seconds),
      nanos: Uint32Array.from(this.#nanos),
      bytes,
      lineStart: Uint32Array.from(this.#lineStart),
      lineLength: Uint32Array.from(this.#lineLength),
      metaStart: Uint32Array.from(this.#metaStart),
      metaName: Uint32Array.from(this.#metaName),
      metaValueStart: Uint32Array.from(values, ({ start }) => start),
      metaValueLength: Uint32Array.from(values, ({ length }) => length),
      metaNames: this.#metaNames,
      levels: Uint8Array.from(this.#levels),
      lineBytes: this.#lineBytes,
    };
  }

  #add(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.#size += bytes.length;
  }

  /** Reads the pairs of a row. A level that the table names is no pair, as in every head. */
  #readMetadata(cursor: Cursor): void {
    let level = 0;
    const pairs: (readonly [name: number, value: number])[] = [];
    for (let left = cursor.uvarint(); left > 0; left--) {
      const [name, value] = [cursor.uvarint(), cursor.uvarint()];
      if (this.#textOf(name) === detectedLevelName) {
        const code = levelNames.indexOf(this.#textOf(value) as (typeof levelNames)[number]);
        level = code < 0 ? levelInMetadata : code;
        if (code >= 0) continue;
      }
      if (this.#textOf(value) !== "") pairs.push([name, value]);
    }
    pairs.sort(([a], [b]) => (this.#textOf(a) < this.#textOf(b) ? -1 : 1));
    for (const [name, value] of pairs) {
      this.#metaName.push(this.#numberOf(name));
      this.#metaValue.push(value);
    }
    this.#metaStart.push(this.#metaName.length);
    this.#levels.push(level);
  }

  #textOf(symbol: number): string {
    const found = this.#symbols[symbol];
    if (found === undefined) throw damaged(this.#name, `it has no symbol ${symbol}`);
    return found.text;
  }

  #numberOf(symbol: number): number {
    let number = this.#metaNumbers.get(symbol);
    if (number === undefined) {
      number = this.#metaNames.push(this.#textOf(symbol)) - 1;
      this.#metaNumbers.set(symbol, number);
    }
    return number;
  }
}
