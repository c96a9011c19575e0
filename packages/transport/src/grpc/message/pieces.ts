import { tooLarge } from "@skald/model";
import { decodeMessage, rawBytes, uint } from "../../protobuf/codec.js";
import { message, optional } from "../../protobuf/message.js";
import { damaged, wires } from "../../protobuf/reader.js";
import { ProtoWriter } from "../../protobuf/writer.js";
import { frameHead, frameHeadBytes } from "./frames.js";
import { giveMemory, takeMemory } from "./memory.js";

/** A message as it was encoded: one or more stretches of bytes, one behind the other. */
export type Parts = readonly Uint8Array[];

/** Bytes of a message in one piece: large enough for speed, small enough that others get their turn. */
export const pieceBytes = 256 * 1024;
/** What a piece takes beside its bytes, at most. */
export const pieceOverheadBytes = 32;

interface Piece {
  readonly data?: Uint8Array;
  readonly sizeBytes?: number;
}

const pieceCodec = message<Piece>({
  data: optional(1, rawBytes),
  sizeBytes: optional(2, uint),
});

/**
 * Cuts a message into pieces, each as the stretches of bytes of one frame: its head, then parts of the message, which are
 * not copied. The first piece says how large the message is.
 */
export function* cutPieces(parts: Parts, maxBytes: number = pieceBytes): Generator<Parts> {
  const total = sizeOf(parts);
  let part = 0;
  let at = 0;
  for (let sent = 0; sent === 0 || sent < total; ) {
    const size = Math.min(maxBytes, total - sent);
    const stretches: Uint8Array[] = [headOf(size, sent === 0 ? total : undefined)];
    for (let filled = 0; filled < size; ) {
      const from = parts[part]!;
      const taken = from.subarray(at, at + size - filled);
      if (taken.length > 0) stretches.push(taken);
      filled += taken.length;
      at += taken.length;
      if (at < from.length) continue;
      part++;
      at = 0;
    }
    yield size <= joinedBytes ? [Buffer.concat(stretches)] : stretches;
    sent += size;
    if (total === 0) return;
  }
}

/** Small pieces go as one stretch: to copy them costs less than to write several. */
const joinedBytes = 16 * 1024;
/** Head of the frame, tag and size of the message, tag and length of the piece. */
const smallHeadBytes = frameHeadBytes + 2 + 2 * 3;

/** The one frame of a small message; undefined when it is larger. */
export function smallFrame(parts: Parts): Buffer | undefined {
  const size = sizeOf(parts);
  if (size > joinedBytes) return undefined;
  const frame = Buffer.allocUnsafe(smallHeadBytes + size);
  let at = frameHeadBytes;
  frame[at++] = totalTag;
  at = putVarint(frame, at, size);
  frame[at++] = dataTag;
  at = putVarint(frame, at, size);
  for (const part of parts) {
    frame.set(part, at);
    at += part.length;
  }
  frame[0] = 0;
  frame.writeUInt32BE(at - frameHeadBytes, 1);
  return frame.subarray(0, at);
}

const totalTag = (2 << 3) | wires.varint;
const dataTag = (1 << 3) | wires.bytes;

function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start;
  let rest = value;
  for (; rest > 127; rest >>>= 7) bytes[at++] = (rest & 127) | 128;
  bytes[at++] = rest;
  return at;
}

function headOf(size: number, total: number | undefined): Uint8Array {
  const writer = new ProtoWriter(pieceOverheadBytes);
  if (total !== undefined) {
    writer.tag(2, wires.varint);
    writer.varint(total);
  }
  writer.tag(1, wires.bytes);
  writer.varint(size);
  const own = writer.finish();
  const head = frameHead(own.length + size, own.length);
  head.set(own, frameHeadBytes);
  return head;
}

/** Puts the pieces of one message together again. */
export class PieceGatherer {
  readonly #maxBytes: number;
  readonly #limitName: string;
  #bytes: Uint8Array | undefined;
  #total = -1;
  #filled = 0;

  /** `limitName`: what to raise when a message is larger. */
  constructor(maxBytes: number, limitName: string) {
    this.#maxBytes = maxBytes;
    this.#limitName = limitName;
  }

  /**
   * Adds a piece; the message when it is whole. Throws too_large before there is memory for it, and invalid_argument for
   * what are no pieces of one message.
   */
  add(encoded: Uint8Array): Uint8Array | undefined {
    const { data = new Uint8Array(0), sizeBytes = 0 } = decodeMessage(pieceCodec, encoded);
    if (this.#total < 0) {
      this.start(sizeBytes);
      if (data.length === sizeBytes) return this.whole(data);
    }
    if (data.length === 0 || data.length > this.#total - this.#filled)
      throw damaged("its pieces do not make up what was announced");
    return this.fill(data);
  }

  /** Whether a piece of so many bytes can be the next one; `total` is what it says of the message, below 0 nothing. */
  takes(total: number, size: number): boolean {
    if (this.#total < 0) return total >= size && (size > 0 || total === 0);
    return total < 0 && size > 0 && size <= this.#total - this.#filled;
  }

  /** Begins a message of so many bytes; throws too_large. */
  start(sizeBytes: number): void {
    if (sizeBytes > this.#maxBytes) throw overLimit(sizeBytes, this.#maxBytes, this.#limitName);
    this.#total = sizeBytes;
  }

  /** Takes the message as a whole. */
  whole(data: Uint8Array): Uint8Array {
    this.#filled = this.#total;
    return data;
  }

  /** Copies bytes of a piece to their place in the message; the message when it is whole. */
  fill(bytes: Uint8Array): Uint8Array | undefined {
    this.#bytes ??= takeMemory(this.#total);
    this.#bytes.set(bytes, this.#filled);
    this.#filled += bytes.length;
    return this.#filled === this.#total ? this.#bytes : undefined;
  }

  /** Gives the memory of the message back, where it has memory of its own: nobody looks at it again. */
  give(): void {
    if (this.#bytes !== undefined) giveMemory(this.#bytes);
    this.#bytes = undefined;
  }
}

export function sizeOf(parts: Parts): number {
  let total = 0;
  for (const { length } of parts) total += length;
  return total;
}

/** The refusal of a message that is larger than may be sent or received. */
export function overLimit(sizeBytes: number, maxBytes: number, limitName: string) {
  return tooLarge(
    `a message of ${sizeBytes} bytes is larger than the ${maxBytes} that are allowed; raise ${limitName}`,
  );
}
