import {
  type Block,
  type BytesColumn,
  internal,
  type MetadataColumn,
  paddingBytes,
} from "@skald/model";
import type { PageMemory } from "../../bytes.js";
import { decodeDelta } from "../../parquet/delta.js";
import { decodeByteArrays } from "../../parquet/delta-length.js";
import { decodeHybrid } from "../../parquet/hybrid.js";
import type { PageSet } from "../segment.js";
import {
  firstMetadataColumn,
  lineColumn,
  type SegmentIndex,
  timestampColumn,
} from "./index-reader.js";
import type { DecodedPage, PageReader } from "./page-reader.js";

/** A block as it lies in its file, and what reads it. */
export interface StoredBlock {
  readonly index: SegmentIndex;
  readonly reader: PageReader;
  readonly pages: PageSet | undefined;
  /** Where decompressed pages go; to memory of their own when absent. */
  readonly memory: PageMemory | undefined;
  readonly block: number;
  readonly rowCount: number;
  readonly runs: Block["runs"];
  /** Names the file in the error of whatever fails. */
  guard<T>(read: () => T): T;
}

/** A sealed block: each column is read, checked and decoded when first asked for, and then kept. */
export function segmentBlock(stored: StoredBlock): Block {
  const { index, rowCount, block, guard } = stored;
  const page = (column: number) => stored.reader.page(column, block, stored);
  const columns = new Map<string, MetadataColumn | undefined>();
  let timestamps: Float64Array | undefined;
  let lines: BytesColumn | undefined;
  let names: readonly string[] | undefined;
  let pairs: MorePairs | undefined;

  function metadataColumn(name: string): MetadataColumn | undefined {
    const ownColumn = index.metadataNames.indexOf(name);
    if (ownColumn >= 0) {
      const column = firstMetadataColumn + ownColumn;
      if (index.pages(column).values[block] === 0) return undefined;
      return { kind: "bytes", ...nullableColumn(page(column), rowCount) };
    }
    const more = index.more();
    const number = more.numberOf(name);
    const place = number === undefined ? -1 : placeIn(more.ofBlock(block), number);
    if (place < 0) return undefined;
    pairs ??= readPairs(page, index, block, rowCount);
    return { kind: "bytes", ...pairColumn(pairs, place, rowCount) };
  }

  return {
    baseNs: index.baseNs,
    rowCount,
    runs: stored.runs,
    timestamps() {
      timestamps ??= guard(
        () => decodeDelta(page(timestampColumn).body, rowCount, index.baseNs).values,
      );
      return timestamps;
    },
    lines() {
      lines ??= guard(() => decodeByteArrays(page(lineColumn).body, rowCount));
      return lines;
    },
    metadataNames() {
      names ??= guard(() => index.namesOf(block));
      return names;
    },
    metadata(name) {
      if (!columns.has(name))
        columns.set(
          name,
          guard(() => metadataColumn(name)),
        );
      return columns.get(name);
    },
  };
}

/** Spreads the values of a page over the rows: a null is an empty value. */
function nullableColumn(page: DecodedPage, rowCount: number): BytesColumn {
  const { offsets, bytes } = decodeByteArrays(page.body, page.values);
  if (page.values === rowCount) return { offsets, bytes };
  const present = new Uint8Array(rowCount);
  decodeHybrid(page.levels, 1, present, rowCount);
  const spread = new Uint32Array(rowCount + 1);
  let value = 0;
  for (let row = 0; row < rowCount; row++) {
    value += present[row]!;
    spread[row + 1] = offsets[value]!;
  }
  if (value !== page.values) throw internal(`page has levels of ${value} values`);
  return { offsets: spread, bytes };
}

/** The pairs of the map of a block, name by name: those of its name n are `order[starts[n] .. starts[n+1])`, in row order. */
interface MorePairs {
  readonly starts: Uint32Array;
  readonly order: Uint32Array;
  readonly rows: Uint32Array;
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

function readPairs(
  page: (column: number) => DecodedPage,
  index: SegmentIndex,
  block: number,
  rowCount: number,
): MorePairs {
  const key = page(index.columnCount - 2);
  const value = page(index.columnCount - 1);
  const more = index.more();
  const rows = pairRows(key, more.levels(block), rowCount);
  const dictionary = more.dictionary(block);
  const codes = new Uint32Array(key.values);
  decodeHybrid(key.body.subarray(1), key.body[0]!, codes, key.values);
  const ids = more.ofBlock(block);
  const places = new Map(Array.from(ids, (id, place) => [id, place]));
  const names = codes.map((code) => {
    const place = places.get(dictionary[code] ?? -1);
    if (place === undefined) throw internal(`page has the code ${code} of ${dictionary.length}`);
    return place;
  });
  return { ...sortByName(names, ids.length), rows, ...decodeByteArrays(value.body, value.values) };
}

/** Counting sort: stable, so the pairs of a name stay in the order of rows. */
function sortByName(names: Uint32Array, nameCount: number): Pick<MorePairs, "starts" | "order"> {
  const starts = new Uint32Array(nameCount + 1);
  for (let pair = 0; pair < names.length; pair++) starts[names[pair]! + 1]!++;
  for (let name = 0; name < nameCount; name++) starts[name + 1]! += starts[name]!;
  const next = starts.slice();
  const order = new Uint32Array(names.length);
  for (let pair = 0; pair < names.length; pair++) order[next[names[pair]!]!++] = pair;
  return { starts, order };
}

/** Where a number stands among ascending ones; -1 when it does not. */
function placeIn(numbers: Float64Array, number: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < number) low = middle + 1;
    else high = middle;
  }
  return numbers[low] === number ? low : -1;
}

/** The row of each pair, from the levels. */
function pairRows(page: DecodedPage, count: number, rowCount: number): Uint32Array {
  const repetition = new Uint8Array(count);
  const definition = new Uint8Array(count);
  const definitionAt = decodeHybrid(page.levels, 1, repetition, count);
  decodeHybrid(page.levels.subarray(definitionAt), 1, definition, count);
  const rows = new Uint32Array(page.values);
  let row = -1;
  let pair = 0;
  for (let i = 0; i < count; i++) {
    if (repetition[i] === 0) row++;
    if (definition[i] === 1) rows[pair++] = row;
  }
  if (row !== rowCount - 1 || pair !== page.values) {
    throw internal(`page has levels of ${row + 1} rows and ${pair} values`);
  }
  return rows;
}

function pairColumn(pairs: MorePairs, place: number, rowCount: number): BytesColumn {
  const { starts, order, offsets: ends } = pairs;
  const from = starts[place]!;
  const to = starts[place + 1]!;
  const offsets = new Uint32Array(rowCount + 1);
  for (let i = from; i < to; i++) {
    const pair = order[i]!;
    offsets[pairs.rows[pair]! + 1] = ends[pair + 1]! - ends[pair]!;
  }
  for (let row = 0; row < rowCount; row++) {
    offsets[row + 1]! += offsets[row]!;
  }
  const total = offsets[rowCount]!;
  const bytes = new Uint8Array(total + paddingBytes).subarray(0, total);
  let at = 0;
  for (let i = from; i < to; i++) {
    const pair = order[i]!;
    const value = pairs.bytes.subarray(ends[pair], ends[pair + 1]);
    bytes.set(value, at);
    at += value.byteLength;
  }
  return { offsets, bytes };
}
