import type { ServerHttp2Stream } from "node:http2";
import { SkaldError } from "@skald/model";
import { wires } from "../../protobuf/reader.js";
import { FrameReader, frameHeadBytes, lengthOfFrame } from "./frames.js";
import { type PieceGatherer, pieceBytes, pieceOverheadBytes } from "./pieces.js";

const dataTag = (1 << 3) | wires.bytes;
const totalTag = (2 << 3) | wires.varint;
/** Bytes before those of a piece, at most: head of the frame, and two tags with numbers. */
const maxHeadBytes = frameHeadBytes + 2 * 6;
/** What `#parse` says beside the length of a head. */
const tooShort = 0;
const unusual = -1;

/**
 * Reads the message of a call as its bytes come: those of a piece go to their place in the message at once, and a small
 * message that came in one stretch stays where it is.
 */
export class MessageReader {
  readonly #gatherer: PieceGatherer;
  /** Reads what is not written as we write it, and what comes behind a message. */
  #frames: FrameReader | undefined;
  #head: Buffer | undefined;
  #headFilled = 0;
  /** Of the head that was read last: the size of the message if it says that, and of the piece. */
  #total = -1;
  #piece = 0;
  /** Bytes of the present piece that are still to come. */
  #missing = 0;
  #message: Uint8Array | undefined;

  constructor(gatherer: PieceGatherer) {
    this.#gatherer = gatherer;
  }

  /**
   * Takes what came; the message once it is whole. Throws too_large before there is memory for it, and invalid_argument or
   * method_not_allowed for what is no message.
   */
  add(chunk: Buffer): Uint8Array | undefined {
    for (let at = 0; at < chunk.length; ) {
      if (this.#frames !== undefined) {
        this.#frames.add(at === 0 ? chunk : chunk.subarray(at));
        break;
      }
      if (this.#missing > 0) {
        const end = Math.min(at + this.#missing, chunk.length);
        this.#missing -= end - at;
        this.#message ??= this.#gatherer.fill(chunk.subarray(at, end));
        at = end;
      } else at = this.#addHead(chunk, at);
    }
    return this.#message;
  }

  /** Reads a head, or as much of it as there is; gives where the next bytes start. */
  #addHead(chunk: Buffer, start: number): number {
    const before = this.#headFilled;
    let head = chunk;
    let from = start;
    let end = chunk.length;
    if (before > 0) {
      head = this.#head as Buffer;
      from = 0;
      end = before + chunk.copy(head, before, start);
    }
    const length = this.#message === undefined ? this.#parse(head, from, end) : unusual;
    if (length === tooShort) {
      this.#head ??= Buffer.allocUnsafe(maxHeadBytes);
      this.#headFilled = before > 0 ? end : chunk.copy(this.#head, 0, start);
      return chunk.length;
    }
    this.#headFilled = 0;
    if (length === unusual) {
      this.#readFrames(head.subarray(from, from + before));
      return start;
    }
    const at = start + length - before;
    if (this.#total >= 0) this.#gatherer.start(this.#total);
    if (this.#piece === this.#total && at + this.#piece <= chunk.length) {
      this.#message = this.#gatherer.whole(chunk.subarray(at, at + this.#piece));
      return at + this.#piece;
    }
    this.#missing = this.#piece;
    return at;
  }

  #readFrames(begun: Buffer): void {
    this.#frames = new FrameReader(pieceBytes + pieceOverheadBytes, (frame) => {
      const message = this.#gatherer.add(frame);
      if (message !== undefined) this.#message = message;
    });
    this.#frames.add(begun);
  }

  /** The length of a head; `unusual` where it is none of ours, or says what cannot be. */
  #parse(bytes: Buffer, from: number, end: number): number {
    if (end - from < frameHeadBytes) return tooShort;
    let at = from + frameHeadBytes;
    const frameEnd = at + lengthOfFrame(bytes, from, maxFrameBytes);
    if (frameEnd === at) return unusual;
    if (at >= end) return tooShort;
    this.#total = -1;
    if (bytes[at] === totalTag) {
      const next = varintEnd(bytes, at + 1, end);
      if (next <= 0) return next;
      this.#total = varint(bytes, at + 1, next);
      at = next;
    }
    if (at >= end) return tooShort;
    if (bytes[at] !== dataTag) return unusual;
    const next = varintEnd(bytes, at + 1, end);
    if (next <= 0) return next;
    this.#piece = varint(bytes, at + 1, next);
    const isOurs =
      next + this.#piece === frameEnd && this.#gatherer.takes(this.#total, this.#piece);
    return isOurs ? next - from : unusual;
  }
}

const maxFrameBytes = pieceBytes + pieceOverheadBytes;
const maxVarintBytes = 5;

/** Behind the number; `tooShort` where it goes on, `unusual` where it is too long. */
function varintEnd(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (bytes[at]! < 128) return at + 1;
    if (at - start + 1 >= maxVarintBytes) return unusual;
  }
  return tooShort;
}

function varint(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = end - 1; at >= start; at--) value = value * 128 + (bytes[at]! & 127);
  return value;
}

const maxHealthBytes = 64 * 1024;

/** Reads a message that is one frame, as those of the health service are. */
export function readFrame(): (chunk: Buffer) => Uint8Array | undefined {
  let whole: Uint8Array | undefined;
  const frames = new FrameReader(maxHealthBytes, (frame) => {
    whole = Uint8Array.from(frame);
  });
  return (chunk) => {
    frames.add(chunk);
    return whole;
  };
}

/** The one message of a call, put together. */
export function receive(
  stream: ServerHttp2Stream,
  gatherer: PieceGatherer,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const reader = new MessageReader(gatherer);
  return gather(stream, signal, (chunk) => reader.add(chunk));
}

/** The one frame of a call of the health service. */
export function receiveFrame(stream: ServerHttp2Stream, signal: AbortSignal): Promise<Uint8Array> {
  return gather(stream, signal, readFrame());
}

function gather(
  stream: ServerHttp2Stream,
  signal: AbortSignal,
  add: (chunk: Buffer) => Uint8Array | undefined,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let isWhole = false;
    stream.on("data", (chunk: Buffer) => {
      try {
        const whole = add(chunk);
        if (whole === undefined || isWhole) return;
        isWhole = true;
        resolve(whole);
      } catch (error) {
        stream.removeAllListeners("data");
        stream.resume();
        reject(error);
      }
    });
    stream.once("end", () => {
      if (!isWhole)
        reject(new SkaldError("invalid_argument", "the call ended in the middle of its message"));
    });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
