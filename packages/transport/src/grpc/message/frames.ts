import { SkaldError } from "@skald/model";

/** Before each message of gRPC: whether it is compressed, and its length. */
export const frameHeadBytes = 5;

/** Cuts what comes of a stream into the messages of gRPC. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #onFrame: (frame: Uint8Array) => void;
  readonly #head = Buffer.alloc(frameHeadBytes);
  #headFilled = 0;
  #length = 0;
  #filled = 0;
  #scratch: Buffer = Buffer.alloc(0);

  /** `onFrame` gets a view that holds until the next byte is added. */
  constructor(maxBytes: number, onFrame: (frame: Uint8Array) => void) {
    this.#maxBytes = maxBytes;
    this.#onFrame = onFrame;
  }

  /** Throws too_large for a frame above the limit before there is memory for it, and what `onFrame` throws. */
  add(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#headFilled < frameHeadBytes) {
        at += this.#addHead(chunk, at);
        continue;
      }
      const missing = this.#length - this.#filled;
      const end = Math.min(at + missing, chunk.length);
      if (this.#filled === 0 && end - at === missing) this.#finish(chunk.subarray(at, end));
      else this.#fill(chunk.subarray(at, end));
      at = end;
    }
  }

  #addHead(chunk: Buffer, at: number): number {
    const taken = chunk.copy(
      this.#head,
      this.#headFilled,
      at,
      at + frameHeadBytes - this.#headFilled,
    );
    this.#headFilled += taken;
    if (this.#headFilled < frameHeadBytes) return taken;
    this.#length = lengthOfFrame(this.#head, 0, this.#maxBytes);
    this.#filled = 0;
    if (this.#length === 0) this.#finish(Buffer.alloc(0));
    return taken;
  }

  #fill(part: Buffer): void {
    if (this.#scratch.length < this.#length) this.#scratch = Buffer.allocUnsafeSlow(this.#length);
    part.copy(this.#scratch, this.#filled);
    this.#filled += part.length;
    if (this.#filled === this.#length) this.#finish(this.#scratch.subarray(0, this.#length));
  }

  #finish(frame: Buffer): void {
    this.#headFilled = 0;
    this.#length = 0;
    this.#filled = 0;
    this.#onFrame(frame);
  }
}

/** The length that the head of a frame says. Throws method_not_allowed when it is compressed, and too_large above the limit. */
export function lengthOfFrame(bytes: Buffer, at: number, maxBytes: number): number {
  if (bytes[at] !== 0)
    throw new SkaldError("method_not_allowed", "messages that are compressed are not understood");
  const length = bytes.readUInt32BE(at + 1);
  if (length > maxBytes)
    throw new SkaldError(
      "too_large",
      `a piece of ${length} bytes is larger than the ${maxBytes} that one may have`,
    );
  return length;
}

/** The head of a frame of so many bytes. */
export function frameHead(length: number, more = 0): Buffer {
  const head = Buffer.alloc(frameHeadBytes + more);
  head.writeUInt32BE(length, 1);
  return head;
}
