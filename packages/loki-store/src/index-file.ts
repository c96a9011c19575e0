import { type Labels, makeLabels } from "@skald/model";
import { Cursor, crc32c, damaged, unsupported } from "./bytes.js";

/** A chunk as an index names it. */
export interface LokiChunk {
  /** First and last time, ms since the epoch, both inclusive and rounded down. */
  readonly fromMs: number;
  readonly throughMs: number;
  /** CRC-32C of the chunk; a part of its name. */
  readonly checksum: number;
  /** Size of its lines, KiB. */
  readonly kib: number;
  readonly entries: number;
}

/** A stream with its chunks. */
export interface LokiStream {
  /** Empty where the file has one tenant. */
  readonly tenant: string;
  /** Hash of the labels; a part of the names of chunks. */
  readonly fingerprint: bigint;
  readonly labels: Labels;
  readonly chunks: readonly LokiChunk[];
}

const magic = 0xbaaad700;
const tenantLabel = "__loki_tenant__";
/** Names a metric in a store that was made for metrics; it is no label of a stream. */
const metricLabel = "__name__";
const alignment = 16;
/** The table of contents at the end: seven offsets, of which three are of use here, two times, and a checksum. */
const tocBytes = 9 * 8 + 4;

/**
 * Reads the streams of an index file of Loki. It is an index of Prometheus' TSDB (docs/format/index.md of that project) with a
 * magic number of its own, and in a series a fingerprint before the labels, a table that speeds up queries, and other
 * numbers for each chunk. Throws for damage, and for another version than 3.
 */
export function readIndexFile(bytes: Uint8Array, name: string): LokiStream[] {
  const cursor = new Cursor(bytes, name);
  if (cursor.u32() !== magic) throw damaged(name, "it is no TSDB index");
  const version = cursor.byte();
  if (version !== 3)
    throw unsupported(
      name,
      `TSDB index of version ${version}; only schema v13 is read (version 3)`,
    );
  const toc = new Cursor(bytes, name, Math.max(0, bytes.length - tocBytes));
  const summed = bytes.subarray(bytes.length - tocBytes, bytes.length - 4);
  const places = Array.from({ length: 3 }, () => toc.offset());
  toc.take(tocBytes - 4 - 3 * 8);
  if (toc.u32() !== crc32c(summed)) throw damaged(name, "the checksum of its contents is wrong");
  const [symbolsAt = 0, seriesAt = 0, seriesEnd = 0] = places;
  const symbols = readSymbols(new Cursor(bytes, name, symbolsAt));
  const streams: LokiStream[] = [];
  for (let at = aligned(seriesAt); at < seriesEnd; ) {
    const series = new Cursor(bytes, name, at);
    const length = series.uvarint();
    const body = series.take(length);
    if (series.u32() !== crc32c(body))
      throw damaged(name, `the checksum of a series at byte ${at} is wrong`);
    streams.push(readSeries(new Cursor(body, name), symbols));
    at = aligned(series.at);
  }
  return streams;
}

function aligned(at: number): number {
  return Math.ceil(at / alignment) * alignment;
}

function readSymbols(cursor: Cursor): string[] {
  cursor.u32();
  const count = cursor.u32();
  const symbols: string[] = [];
  while (symbols.length < count) symbols.push(cursor.text());
  return symbols;
}

function readSeries(cursor: Cursor, symbols: readonly string[]): LokiStream {
  const fingerprint = cursor.u64();
  const pairs: [string, string][] = [];
  let tenant = "";
  for (let left = cursor.uvarint(); left > 0; left--) {
    const name = symbols[cursor.uvarint()] ?? "";
    const value = symbols[cursor.uvarint()] ?? "";
    if (name === tenantLabel) tenant = value;
    else if (name !== metricLabel) pairs.push([name, value]);
  }
  const count = cursor.uvarint();
  if (count > 0) cursor.take(cursor.u32());
  const chunks: LokiChunk[] = [];
  // Each time is a difference from the one before it.
  let timeMs = 0;
  while (chunks.length < count) {
    const fromMs = timeMs + Number(cursor.varint());
    const throughMs = fromMs + cursor.uvarint();
    const [kib, entries] = [cursor.uvarint(), cursor.uvarint()];
    chunks.push({ fromMs, throughMs, kib, entries, checksum: cursor.u32() });
    timeMs = throughMs;
  }
  return { tenant, fingerprint, labels: makeLabels(pairs), chunks };
}
