import { crc32 } from "node:zlib";
import { errorCodeOf } from "@skald/model";
import { magic } from "../../parquet/format.js";
import { type ReadFooter, readFooter } from "../../parquet/read-metadata.js";
import { groupBytes } from "../filter/filter-table.js";
import type { SyncRangeReader } from "../range-reader.js";
import type { SegmentIndex } from "../read/index-reader.js";
import { openIndex, openSegment } from "../read/reader.js";
import type { LabelTable } from "../segment.js";
import { endBytes, parseTrailer, type SegmentTrailer, trailerBytes } from "../trailer.js";
import { verifyBlocks } from "./verify-blocks.js";
import { type Damage, verifyPages } from "./verify-pages.js";

/** What a look at all of a segment found. */
export interface SegmentCheck {
  /** Empty when every byte is as it was written. */
  readonly damage: readonly Damage[];
  /** What its index says; undefined when that cannot be read. */
  readonly found: FoundSegment | undefined;
}

/** What the index of a segment says of it as a whole. */
export interface FoundSegment {
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly rows: number;
  /** Bytes of the lines. */
  readonly lineBytes: number;
  readonly sizeBytes: number;
  readonly streams: LabelTable;
}

/**
 * Reads all of a segment and checks it: index, filters, every page and its header, every block decoded, digests, and the
 * metadata of Parquet. Yields after each page and block the bytes of the file that were read; holds one block at a time. What
 * is damaged is in the result; throws `newer_version` for a file that a later program wrote, and what reading throws that is not
 * about contents.
 */
export function* verifySegment(reader: SyncRangeReader): Generator<number, SegmentCheck> {
  const damage: Damage[] = [];
  const onDamage = (one: Damage) => void damage.push(one);
  const attempt = <T>(part: string, act: () => T): T | undefined => {
    try {
      return act();
    } catch (error) {
      if (errorCodeOf(error) === "newer_version") throw error;
      onDamage({ part, message: (error as Error).message });
      return undefined;
    }
  };
  attempt("head", () => checkHead(reader));
  const index = attempt("index", () => openIndex(reader));
  if (index === undefined) {
    yield reader.sizeBytes;
    return { damage, found: undefined };
  }
  attempt("index", () => decodeAll(index));
  const end = readEnd(reader);
  yield reader.sizeBytes - end.trailer.indexOffset;
  yield* verifyFilters(reader, index, onDamage);
  const footer = attempt("footer", () => readFooter(end.footerBytes));
  if (footer !== undefined) yield* pagesOf({ reader, index, ...end, footer, onDamage });
  const before = damage.length;
  const segment = openSegment(reader, index, index.image);
  const ofBlocks: Damage[] = [];
  for (const _ of verifyBlocks(segment, (one) => ofBlocks.push(one))) yield 0;
  // A block whose page is damaged cannot be decoded: told once.
  if (before === 0) damage.push(...ofBlocks);
  else
    damage.push(...ofBlocks.filter(({ message }) => !/does not match its checksum/.test(message)));
  return { damage, found: foundOf(segment, index) };
}

function* pagesOf(file: {
  readonly reader: SyncRangeReader;
  readonly index: SegmentIndex;
  readonly trailer: SegmentTrailer;
  readonly footer: ReadFooter;
  readonly footerBytes: Uint8Array;
  readonly onDamage: (damage: Damage) => void;
}): Generator<number, void> {
  try {
    yield* verifyPages(file);
  } catch (error) {
    file.onDamage({ part: "footer", message: (error as Error).message });
  }
}

function checkHead(reader: SyncRangeReader): void {
  const head = Buffer.from(reader.read(0, magic.length)).toString("latin1");
  if (head !== magic) throw new Error("the file does not begin like a parquet file");
}

/** Decodes what is otherwise decoded when it is first asked for. */
function decodeAll(index: SegmentIndex): void {
  for (let column = 0; column < index.columnCount; column++) index.pages(column);
  index.more();
  index.filters();
  index.digests();
  index.marks();
  index.levels();
  index.slices();
}

function* verifyFilters(
  reader: SyncRangeReader,
  index: SegmentIndex,
  onDamage: (damage: Damage) => void,
): Generator<number, void> {
  for (const group of index.filters()?.groups ?? []) {
    const bytes = groupBytes(group);
    if (crc32(reader.read(group.offset, bytes)) !== group.crc) {
      const { offset, from, blocks } = group;
      const part = `filter of blocks ${from} to ${from + blocks - 1}`;
      onDamage({ part, offset, message: "it does not match its checksum" });
    }
    yield bytes;
  }
}

/** The trailer and the footer of a file whose index was read. */
export function readEnd(reader: SyncRangeReader): {
  readonly trailer: SegmentTrailer;
  readonly footerBytes: Uint8Array;
} {
  const last = reader.read(reader.sizeBytes - endBytes, endBytes);
  const length = new DataView(last.buffer, last.byteOffset).getUint32(0, true);
  const from = reader.sizeBytes - endBytes - length;
  const trailer = parseTrailer(reader.read(from - trailerBytes, trailerBytes), length, reader.name);
  return { trailer, footerBytes: reader.read(from, length) };
}

function foundOf(
  { minNs, maxNs, sizeBytes }: { minNs: bigint; maxNs: bigint; sizeBytes: number },
  index: SegmentIndex,
): FoundSegment {
  const { id, tenant, rowCount: rows, lineBytes, streams } = index;
  return { id, tenant, minNs, maxNs, rows, lineBytes, sizeBytes, streams };
}
