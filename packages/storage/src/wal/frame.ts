import { crc32 } from "node:zlib";
import { tooLarge } from "@skald/model";

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

/** Header of a record; the checksum covers length, type and payload. Throws `too_large` for more than `maxBytes`. */
export function encodeWalRecordHeader(
  marker: number,
  type: number,
  payload: readonly Uint8Array[],
  maxBytes = maxWalRecordBytes,
): Buffer {
  const header = Buffer.allocUnsafe(walRecordHeaderBytes);
  let length = 0;
  for (const part of payload) length += part.byteLength;
  if (length > maxBytes) {
    throw tooLarge(`record of ${length} bytes is too large for the log, which takes ${maxBytes}`);
  }
  header.writeUInt32LE(marker, 0);
  header.writeUInt32LE(length, 8);
  header.writeUInt32LE(type, 12);
  let crc = crc32(header.subarray(8));
  for (const part of payload) crc = crc32(part, crc);
  header.writeUInt32LE(crc, 4);
  return header;
}

export interface WalFrame {
  readonly type: number;
  /** A view of the file's bytes. */
  readonly payload: Buffer;
  /** Where the record begins in the file, and where the next one does. */
  readonly offset: number;
  readonly end: number;
}

/** How a file ends: at its last record, in a record that was being written, or in damage before good records. */
export type WalEnd =
  | { readonly kind: "clean"; readonly offset: number }
  | { readonly kind: "torn"; readonly offset: number }
  | { readonly kind: "corrupt"; readonly offset: number };

/** Walks over the records of a log file, up to the first that is not whole. */
export class WalFrames {
  readonly #bytes: Buffer;
  readonly #marker: number;
  readonly #maxBytes: number;
  #at = walFileHeaderBytes;

  /** A record of more than `maxBytes` is damage. */
  constructor(bytes: Buffer, maxBytes = maxWalRecordBytes) {
    this.#bytes = bytes;
    this.#maxBytes = maxBytes;
    const whole = bytes.length >= walFileHeaderBytes;
    this.#marker = whole ? bytes.readUInt32LE(12) : 0;
    const known = whole && bytes.toString("latin1", 0, 8) === magic;
    if (!known || bytes.readUInt32LE(8) !== version) this.#at = 0;
  }

  next(): WalFrame | undefined {
    if (this.#at === 0) return undefined;
    const frame = this.#read(this.#at);
    if (frame !== undefined) this.#at = frame.end;
    return frame;
  }

  /** What stands behind the last record that `next` returned. Ask once it has returned undefined. */
  end(): WalEnd {
    const offset = this.#at;
    if (offset === this.#bytes.length) return { kind: "clean", offset };
    if (offset === 0) {
      const torn = this.#bytes.length < walFileHeaderBytes || this.#bytes.every(isZero);
      return { kind: torn ? "torn" : "corrupt", offset };
    }
    return { kind: this.#recordFollows(offset + 1) ? "corrupt" : "torn", offset };
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

  #recordFollows(from: number): boolean {
    const marker = Buffer.alloc(4);
    marker.writeUInt32LE(this.#marker);
    for (let at = from; ; at++) {
      at = this.#bytes.indexOf(marker, at);
      if (at < 0) return false;
      if (this.#read(at) !== undefined) return true;
    }
  }
}

const magic = "SKALDWAL";
const version = 1;

function isZero(byte: number): boolean {
  return byte === 0;
}
