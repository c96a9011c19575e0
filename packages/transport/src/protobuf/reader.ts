import { invalidArgument, type SkaldError } from "@skald/model";

/** Messages within messages: far more than any has, because trees are sent as lists. */
const maxDepth = 100;
const maxShift = 2 ** 53;

/** Kinds of encoding of a field. */
export const wires = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Reads the parts of protobuf messages. Throws invalid_argument when bytes are missing or make no sense. */
export class ProtoReader {
  readonly #bytes: Buffer;
  #at = 0;
  #end: number;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#end = bytes.byteLength;
  }

  /** Whether the present message is read to its end. */
  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** A whole number from 0 to 2^53 - 1. */
  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      if (this.#at >= this.#end) throw cutOff();
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) break;
      if (factor >= maxShift) throw damaged("a number has more than 64 bits");
    }
    if (value > Number.MAX_SAFE_INTEGER) throw damaged("a number is above 2^53");
    return value;
  }

  double(): number {
    return this.#bytes.readDoubleLE(this.#take(8));
  }

  int64(): bigint {
    return this.#bytes.readBigInt64LE(this.#take(8));
  }

  /** The bytes of a field, as a view. */
  bytes(): Uint8Array {
    const length = this.varint();
    const start = this.#take(length);
    const { buffer, byteOffset } = this.#bytes;
    return new Uint8Array(buffer, byteOffset + start, length);
  }

  text(): string {
    const length = this.varint();
    const start = this.#take(length);
    return this.#bytes.toString("utf8", start, start + length);
  }

  /** What `read` makes of a message within this one. */
  nested<T>(read: (reader: ProtoReader) => T): T {
    const outer = this.#end;
    const length = this.varint();
    const end = this.#take(length) + length;
    if (++this.#depth > maxDepth) throw damaged(`it has more than ${maxDepth} levels`);
    this.#at = end - length;
    this.#end = end;
    const value = read(this);
    this.#at = end;
    this.#end = outer;
    this.#depth--;
    return value;
  }

  /** Passes over a field that is not known: a newer version may have added it. */
  skip(wire: number): void {
    if (wire === wires.bytes) this.#take(this.varint());
    else if (wire === wires.fixed64) this.#take(8);
    else if (wire === wires.fixed32) this.#take(4);
    else if (wire === wires.varint) this.#skipVarint();
    else throw damaged(`it has a field of the unknown kind ${wire}`);
  }

  #skipVarint(): void {
    for (let count = 0; count < 10; count++) {
      if (this.#bytes[this.#take(1)]! < 0x80) return;
    }
    throw damaged("a number has more than 64 bits");
  }

  /** Where the next bytes start. */
  #take(count: number): number {
    const start = this.#at;
    if (count > this.#end - start) throw cutOff();
    this.#at = start + count;
    return start;
  }
}

/** The refusal of a message whose bytes or values cannot be meant. */
export function damaged(why: string): SkaldError {
  return invalidArgument(`the message is damaged: ${why}`);
}

function cutOff(): SkaldError {
  return damaged("it ends too soon");
}
