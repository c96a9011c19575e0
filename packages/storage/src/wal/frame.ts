import { crc32 } from "node:zlib";
import { refuseNewerVersion, tooLarge } from "@skald/model";

/** Bytes before the first record of a log file: magic, version, marker. */
export const walFileHeaderBytes = 16;
/** Bytes before the payload of a record: marker, checksum, length, type. */
export const walRecordHeaderBytes = 16;
/** The largest payload of one record, more than any push makes: nothing larger is written, or read. */
export const maxWalRecordBytes = 1024 * 1024 * 1024 + 64 * 1024 * 1024;

/**
 * First bytes of a log file. The marker is drawn at random for each file and stands before each record, so that no
 * pushed body can hold something that looks like a record of the file.
 */
export function encodeWalFileHeader(marker: number): Buffer {
  const header = Buffer.alloc(walFileHeaderBytes);
  header.write(magic, 0, "latin1");
  header.writeUInt32LE(version, 8);
  header.writeUInt32LE(marker, 12);
  return header;
}

/** Throws `newer_version` for a log file that a later program wrote, by its first bytes. */
export function refuseNewerWal(path: string, bytes: Buffer): void {
  if (bytes.length < walFileHeaderBytes || !hasMagic(bytes)) return;
  refuseNewerVersion(path, { found: bytes.readUInt32LE(8), known: version });
}

/** Header of a record; the checksum covers length, type and payload. Throws `too_large` for more than `maxBytes`. */
export function encodeWalRecordHeader(
  marker: number,
  type: number,
  payload: readonly Uint8Array[],
  maxBytes = maxWalRecordBytes,
): Buffer {
  const header = Buffer.allocUnsafe(walRecordHeaderBytes);
  fillWalRecordHeader(marker, { bytes: header, type, maxBytes }, payload);
  return header;
}

/** A record whose bytes begin with room for its header; a body may come behind them. */
interface WalRecordBytes {
  readonly bytes: Buffer;
  readonly type: number;
  readonly maxBytes: number;
}

/** Writes the header of a record whose payload is what its bytes have behind the header, and then `parts`. */
export function fillWalRecordHeader(
  marker: number,
  { bytes, type, maxBytes }: WalRecordBytes,
  parts: readonly Uint8Array[],
): void {
  let length = bytes.length - walRecordHeaderBytes;
  for (const part of parts) length += part.byteLength;
  if (length > maxBytes) {
    throw tooLarge(`record of ${length} bytes is too large for the log, which takes ${maxBytes}`);
  }
  bytes.writeUInt32LE(marker, 0);
  bytes.writeUInt32LE(length, 8);
  bytes.writeUInt32LE(type, 12);
  let crc = crc32(bytes.subarray(8));
  for (const part of parts) crc = crc32(part, crc);
  bytes.writeUInt32LE(crc, 4);
}

export interface WalFrame {
  readonly type: number;
  /** A view of the file's bytes. */
  readonly payload: Buffer;
  /** Where the record begins in the file, and where the next one does. */
  readonly offset: number;
  readonly end: number;
}

/** The bytes `offset .. end` of a file that are no records although whole records follow. */
export interface WalGap {
  readonly offset: number;
  readonly end: number;
}

/** How a file ends: at its last record, in a record that was being written, or, where there is no record at all, in damage. */
type WalEnd =
  | { readonly kind: "clean"; readonly offset: number }
  | { readonly kind: "torn"; readonly offset: number }
  | { readonly kind: "corrupt"; readonly offset: number };

/** Walks over the whole records of a log file; what lies between them is damage. */
export class WalFrames {
  /** Damage that was passed so far. */
  readonly gaps: WalGap[] = [];
  readonly #bytes: Buffer;
  readonly #maxBytes: number;
  #marker = 0;
  #at = 0;

  /** A record of more than `maxBytes` is damage. */
  constructor(bytes: Buffer, maxBytes = maxWalRecordBytes) {
    this.#bytes = bytes;
    this.#maxBytes = maxBytes;
    if (bytes.length < walFileHeaderBytes) return;
    const isKnown = hasMagic(bytes) && bytes.readUInt32LE(8) === version;
    const marker = bytes.readUInt32LE(12);
    this.#marker = this.#findMarker() ?? (isKnown ? marker : 0);
    if (isKnown && this.#marker === marker) this.#at = walFileHeaderBytes;
  }

  /** Of the file; 0 where none can be made out. */
  get marker(): number {
    return this.#marker;
  }

  next(): WalFrame | undefined {
    if (this.#marker === 0) return undefined;
    const next = (this.#at > 0 ? this.#read(this.#at) : undefined) ?? this.#find(this.#at + 1);
    if (next === undefined) return undefined;
    if (next.offset > this.#at) this.gaps.push({ offset: this.#at, end: next.offset });
    this.#at = next.end;
    return next;
  }

  /** The same file from where `next` has come to. */
  rest(): WalFrames {
    const rest = new WalFrames(this.#bytes, this.#maxBytes);
    rest.#marker = this.#marker;
    rest.#at = this.#at;
    return rest;
  }

  /** What stands behind the last record that `next` returned. Ask once it has returned undefined. */
  end(): WalEnd {
    const offset = this.#at;
    if (offset === this.#bytes.length) return { kind: "clean", offset };
    const isTorn = offset > 0 || this.#bytes.length < walFileHeaderBytes;
    return { kind: isTorn || this.#bytes.every(isZero) ? "torn" : "corrupt", offset };
  }

  #read(offset: number): WalFrame | undefined {
    const bytes = this.#bytes;
    const start = offset + walRecordHeaderBytes;
    if (start > bytes.length || bytes.readUInt32LE(offset) !== this.#marker) return undefined;
    const length = bytes.readUInt32LE(offset + 8);
    const end = start + length;
    if (length > this.#maxBytes || end > bytes.length) return undefined;
    const payload = bytes.subarray(start, end);
    const crc = crc32(payload, crc32(bytes.subarray(offset + 8, start)));
    if (crc !== bytes.readUInt32LE(offset + 4)) return undefined;
    return { type: bytes.readUInt32LE(offset + 12), payload, offset, end };
  }

  /** The first whole record from a place on. */
  #find(from: number): WalFrame | undefined {
    const marker = Buffer.alloc(4);
    marker.writeUInt32LE(this.#marker);
    for (let at = from; ; at++) {
      at = this.#bytes.indexOf(marker, at);
      if (at < 0) return undefined;
      const frame = this.#read(at);
      if (frame !== undefined) return frame;
    }
  }

  /** The header may be damaged: it ends with the marker, and the first record behind it begins with it. */
  #findMarker(): number | undefined {
    for (const at of [walFileHeaderBytes - 4, walFileHeaderBytes]) {
      if (at + 4 > this.#bytes.length) return undefined;
      this.#marker = this.#bytes.readUInt32LE(at);
      if (this.#marker !== 0 && this.#find(walFileHeaderBytes) !== undefined) return this.#marker;
    }
    return undefined;
  }
}

/** Type of a record that holds damage, so that no later replay meets it. */
export const walVoidType = 0;

/** What to write over the first bytes of a gap to make a void record of it, behind a new header where that is damaged. */
export function encodeWalPatch(bytes: Buffer, marker: number, { offset, end }: WalGap): Buffer {
  const header = offset === 0 ? encodeWalFileHeader(marker) : Buffer.alloc(0);
  const payloadAt = offset + header.length + walRecordHeaderBytes;
  if (payloadAt > end) return header;
  const payload = bytes.subarray(payloadAt, end);
  return Buffer.concat([header, encodeWalRecordHeader(marker, walVoidType, [payload])]);
}

const magic = "SKALDWAL";
const version = 1;

function hasMagic(bytes: Buffer): boolean {
  return bytes.toString("latin1", 0, magic.length) === magic;
}

function isZero(byte: number): boolean {
  return byte === 0;
}
