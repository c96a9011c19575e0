import { internal, refuseNewerVersion } from "@skald/model";

/**
 * The 24 bytes before the Parquet footer that lead to the own index:
 *
 *     u64 index offset | u32 index bytes | u32 crc32 of the index as stored | "SKALDIX1"
 */
export interface SegmentTrailer {
  readonly indexOffset: number;
  readonly indexBytes: number;
  readonly indexCrc: number;
  readonly footerBytes: number;
}

export const trailerBytes = 24;
export const trailerMagic = "SKALDIX1";
const version = 1;
/** u32 length of the footer | "PAR1" */
export const endBytes = 8;

/** Bytes behind the index: where the trailer begins, counted from the end of the file. */
export function trailerFromEnd(end: Uint8Array, name: string): number {
  const bytes = Buffer.from(end.buffer, end.byteOffset, end.byteLength);
  if (bytes.byteLength < endBytes || bytes.toString("latin1", bytes.length - 4) !== "PAR1") {
    throw internal(`segment ${name} does not end like a parquet file`);
  }
  return bytes.readUInt32LE(bytes.length - endBytes) + endBytes + trailerBytes;
}

/**
 * Parses the trailer. Throws `internal` when there is none: the file is foreign, or its end is damaged; `newer_version` when a
 * later program wrote it.
 */
export function parseTrailer(
  trailer: Uint8Array,
  footerBytes: number,
  name: string,
): SegmentTrailer {
  const bytes = Buffer.from(trailer.buffer, trailer.byteOffset, trailerBytes);
  const magic = bytes.toString("latin1", 16, 24);
  if (magic !== trailerMagic) {
    const found = /^SKALDIX(\d)$/.exec(magic)?.[1];
    refuseNewerVersion(`segment ${name}`, { found: Number(found), known: version });
    throw internal(`segment ${name} has no index: it was not written by this store, or is damaged`);
  }
  return {
    indexOffset: Number(bytes.readBigUInt64LE(0)),
    indexBytes: bytes.readUInt32LE(8),
    indexCrc: bytes.readUInt32LE(12),
    footerBytes,
  };
}
