import { hashRows, mix } from "@skald/kernels";
import type { BytesColumn, MetadataColumn } from "@skald/model";
import type { MapRows } from "../write/map-column.js";

/** Hashes of rows, in two halves of 32 bits that are independent of each other. */
export interface RowHashes {
  readonly high: Uint32Array;
  readonly low: Uint32Array;
}

/** What rows are hashed from. */
export interface HashedRows {
  readonly rowCount: number;
  /** ns since the base */
  readonly timestamps: Float64Array;
  readonly lines: BytesColumn;
  readonly metadata: Iterable<readonly [string, MetadataColumn | BytesColumn]>;
  /** Metadata as pairs, by names of this list. */
  readonly more?: { readonly rows: MapRows; readonly names: readonly string[] };
}

/**
 * Hashes time, line and metadata of each row: equal rows have equal hashes in whatever source and block they are, and
 * whatever columns their metadata is in. An empty value is no value.
 */
export function hashBlockRows(block: HashedRows): RowHashes {
  const { rowCount, timestamps, lines } = block;
  const { high, low } = hashesOf(lines, rowCount);
  const metadata = { high: new Uint32Array(rowCount), low: new Uint32Array(rowCount) };
  for (const [name, column] of block.metadata) addColumn(metadata, name, column, rowCount);
  if (block.more !== undefined) addPairs(metadata, block.more.rows, block.more.names);
  for (let row = 0; row < rowCount; row++) {
    const time = timestamps[row]!;
    const early = time >>> 0;
    const late = Math.floor(time / 2 ** 32);
    low[row] = mix(mix(low[row]! + mix(early ^ mix(late + 1))) + metadata.low[row]!);
    high[row] = mix(mix(high[row]! ^ mix(early + mix(late ^ salt))) ^ metadata.high[row]!);
  }
  return { high, low };
}

const salt = 0x9e3779b9;

/** Adds the pairs of a name to the sums of their rows, so that the order of names does not matter. */
function addColumn(
  sums: RowHashes,
  name: string,
  column: MetadataColumn | BytesColumn,
  rowCount: number,
): void {
  const own = hashOfText(name);
  if ("codes" in column) {
    const values = column.dictionary.map((value) => (value === "" ? undefined : hashOfText(value)));
    for (let row = 0; row < rowCount; row++) {
      const value = values[column.codes[row]!];
      if (value !== undefined) addPair(sums, row, own, value.high, value.low);
    }
    return;
  }
  const { offsets } = column;
  const { high, low } = hashesOf(column, rowCount);
  for (let row = 0; row < rowCount; row++) {
    if (offsets[row] !== offsets[row + 1]) addPair(sums, row, own, high[row]!, low[row]!);
  }
}

function addPairs(sums: RowHashes, rows: MapRows, names: readonly string[]): void {
  if (rows.names.length === 0) return;
  const offsets = new Uint32Array(rows.valueLengths.length + 1);
  rows.valueLengths.forEach((length, pair) => {
    offsets[pair + 1] = offsets[pair]! + length;
  });
  const { high, low } = hashesOf({ bytes: rows.values, offsets }, rows.valueLengths.length);
  const own = new Map(rows.used.map((name) => [name, hashOfText(names[name]!)]));
  for (let row = 0; row < rows.rowCount; row++) {
    for (let pair = rows.pairStart[row]!; pair < rows.pairStart[row + 1]!; pair++) {
      if (rows.valueLengths[pair] === 0) continue;
      addPair(sums, row, own.get(rows.names[pair]!)!, high[pair]!, low[pair]!);
    }
  }
}

function addPair(sums: RowHashes, row: number, name: Hash, high: number, low: number): void {
  sums.low[row]! += mix(low + mix(name.low ^ salt));
  sums.high[row]! += mix(high ^ mix(name.high + salt));
}

interface Hash {
  readonly high: number;
  readonly low: number;
}

function hashOfText(text: string): Hash {
  const bytes = Buffer.from(text, "utf8");
  const { high, low } = hashesOf({ bytes, offsets: Uint32Array.of(0, bytes.length) }, 1);
  return { high: high[0]!, low: low[0]! };
}

function hashesOf({ bytes, offsets }: BytesColumn, count: number): RowHashes {
  const high = new Uint32Array(count);
  const low = new Uint32Array(count);
  hashRows(bytes, offsets, count, high, low);
  return { high, low };
}
