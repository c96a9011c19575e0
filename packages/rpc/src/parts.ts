import { tooLarge } from "@skald/model";
import { damaged, ProtoReader, wires } from "@skald/transport/protobuf";

// An answer that is a stream: `XPart { oneof kind { X whole = 1; bytes stretch = 2; bytes last = 3; } }`. The three have the
// same encoding, a tag, a length and bytes, so that one codec serves every message.
const whole = 1;
const stretch = 2;
const last = 3;

/** Most bytes of a part: large enough for speed, small enough that others get their turn. */
export const maxPartBytes = 1024 * 1024;
/** Bytes of a tag and a length, at most. */
const headBytes = 6;

/** Cuts an encoded answer into messages of at most `maxBytes`. */
export function* cutParts(answer: Uint8Array, maxBytes: number): Generator<Buffer> {
  const size = Math.max(1, Math.min(maxBytes, maxPartBytes) - headBytes);
  if (answer.length <= Math.max(size, maxBytes - headBytes)) {
    yield partOf(whole, answer);
    return;
  }
  for (let at = 0; at < answer.length; at += size) {
    const end = at + size;
    yield partOf(end < answer.length ? stretch : last, answer.subarray(at, end));
  }
}

function partOf(field: number, bytes: Uint8Array): Buffer {
  const part = Buffer.allocUnsafe(headBytes + bytes.length);
  part[0] = field * 8 + wires.bytes;
  let at = 1;
  let rest = bytes.length;
  for (; rest > 0x7f; rest >>>= 7) part[at++] = (rest & 0x7f) | 0x80;
  part[at++] = rest;
  part.set(bytes, at);
  return part.subarray(0, at + bytes.length);
}

/** Puts the parts of one answer after the other together again. */
export class PartGatherer {
  readonly #maxBytes: number;
  #stretches: Uint8Array[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds a part; gives the answer when it is whole. Throws too_large, and invalid_argument for what is no part. */
  add(part: Uint8Array): Uint8Array | undefined {
    const reader = new ProtoReader(part);
    let field = 0;
    let bytes: Uint8Array | undefined;
    while (!reader.isAtEnd) {
      const tag = reader.varint();
      if (tag % 8 !== wires.bytes || tag > last * 8 + wires.bytes) reader.skip(tag % 8);
      else {
        field = Math.floor(tag / 8);
        bytes = reader.bytes();
      }
    }
    if (bytes === undefined) throw damaged("it is no part of an answer");
    this.#size += bytes.length;
    if (this.#size > this.#maxBytes)
      throw overLimit(this.#size, this.#maxBytes, "max_recv_msg_size");
    if (field === stretch) {
      this.#stretches.push(bytes);
      return undefined;
    }
    if (field === whole && this.#stretches.length > 0)
      throw damaged("the parts of an answer do not end");
    const answer = this.#stretches.length === 0 ? ownBytes(bytes) : this.#join(bytes);
    this.#stretches = [];
    this.#size = 0;
    return answer;
  }

  #join(end: Uint8Array): Uint8Array {
    const answer = new Uint8Array(this.#size);
    let at = 0;
    for (const one of [...this.#stretches, end]) {
      answer.set(one, at);
      at += one.length;
    }
    return answer;
  }
}

/** Memory that is not shared with other messages, so that it can be moved to another thread. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  const isAlone = bytes.buffer.byteLength <= bytes.length + 4 * headBytes;
  return isAlone ? bytes : bytes.slice();
}

/** The refusal of a message that is larger than `limitName` allows. */
export function overLimit(sizeBytes: number, maxBytes: number, limitName: string) {
  return tooLarge(
    `a message of ${sizeBytes} bytes is larger than the ${maxBytes} that are allowed; raise ${limitName}`,
  );
}
