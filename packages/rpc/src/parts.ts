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
export function* cutParts(answer: Uint8Array, maxBytes: number): Generator<Part> {
  const size = Math.max(1, Math.min(maxBytes, maxPartBytes) - headBytes);
  if (answer.length <= Math.max(size, maxBytes - headBytes)) {
    yield new Part(whole, answer);
    return;
  }
  for (let at = 0; at < answer.length; at += size) {
    const end = at + size;
    yield new Part(end < answer.length ? stretch : last, answer.subarray(at, end));
  }
}

/**
 * A part as the library takes it: the library asks for the length of a message and copies it behind a header of its own. So
 * the bytes of an answer are copied once.
 */
export class Part {
  readonly #head: Uint8Array;
  readonly #bytes: Uint8Array;
  readonly byteLength: number;

  constructor(field: number, bytes: Uint8Array) {
    const head = [field * 8 + wires.bytes];
    let rest = bytes.length;
    for (; rest > 0x7f; rest >>>= 7) head.push((rest & 0x7f) | 0x80);
    head.push(rest);
    this.#head = Uint8Array.from(head);
    this.#bytes = bytes;
    this.byteLength = head.length + bytes.length;
  }

  copy(target: Uint8Array, at: number): void {
    target.set(this.#head, at);
    target.set(this.#bytes, at + this.#head.length);
  }
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
    const answer = ownBytes(
      this.#stretches.length === 0 ? bytes : Buffer.concat([...this.#stretches, bytes]),
    );
    this.#stretches = [];
    this.#size = 0;
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
