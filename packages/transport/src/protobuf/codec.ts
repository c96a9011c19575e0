import { damaged, ProtoReader, wires } from "./reader.js";
import { ProtoWriter } from "./writer.js";

/** How values of one type are written, and read and checked again. Reading throws invalid_argument. */
export interface Codec<T> {
  readonly wire: number;
  write(writer: ProtoWriter, value: T): void;
  read(reader: ProtoReader): T;
  /** What a field that is left out means; a field without it must be there. */
  readonly zero?: { make(): T; is(value: T): boolean };
}

/** A codec of messages: what is sent on its own is one of these. */
export interface MessageCodec<T> extends Codec<T> {
  writeFields(writer: ProtoWriter, value: T): void;
  readFields(reader: ProtoReader): T;
}

/** The bytes of a message, in memory of its own; `sizeBytes` is a guess. */
export function encodeMessage<T>(
  codec: MessageCodec<T>,
  value: T,
  sizeBytes?: number,
): Uint8Array<ArrayBuffer> {
  const writer = new ProtoWriter(sizeBytes);
  codec.writeFields(writer, value);
  return writer.finish();
}

/** Throws invalid_argument when the bytes are no such message. Arrays are copies, but for `rawBytes`. */
export function decodeMessage<T>(codec: MessageCodec<T>, bytes: Uint8Array): T {
  return codec.readFields(new ProtoReader(bytes));
}

/** A codec of messages out of the two that do it. */
export function messageOf<T>(
  writeFields: (writer: ProtoWriter, value: T) => void,
  readFields: (reader: ProtoReader) => T,
): MessageCodec<T> {
  return {
    wire: wires.bytes,
    writeFields,
    readFields,
    write: (writer, value) => writer.nested(value, writeFields),
    read: (reader) => reader.nested(readFields),
  };
}

/** The same with a type that is made from what is on the wire, and turned back into it. */
export function mapped<T, Wire>(
  codec: MessageCodec<Wire>,
  toWire: (value: T) => Wire,
  fromWire: (value: Wire) => T,
): MessageCodec<T> {
  return messageOf(
    (writer, value) => codec.writeFields(writer, toWire(value)),
    (reader) => fromWire(codec.readFields(reader)),
  );
}

/** A codec that is declared later: for types that hold themselves. */
export function later<T>(codec: () => MessageCodec<T>): MessageCodec<T> {
  return messageOf(
    (writer, value) => codec().writeFields(writer, value),
    (reader) => codec().readFields(reader),
  );
}

/** Whole numbers from 0 to 2^53 - 1: `uint64`. */
export const uint: Codec<number> = {
  wire: wires.varint,
  write: (writer, value) => writer.varint(value),
  read: (reader) => reader.varint(),
  zero: { make: () => 0, is: (value) => value === 0 },
};

/** `double` */
export const double: Codec<number> = {
  wire: wires.fixed64,
  write: (writer, value) => writer.double(value),
  read: (reader) => reader.double(),
  zero: { make: () => 0, is: (value) => Object.is(value, 0) },
};

/** `sfixed64` */
export const int64: Codec<bigint> = {
  wire: wires.fixed64,
  write: (writer, value) => writer.int64(value),
  read: (reader) => reader.int64(),
  zero: { make: () => 0n, is: (value) => value === 0n },
};

/** `bool` */
export const bool: Codec<boolean> = {
  wire: wires.varint,
  write: (writer, value) => writer.varint(value ? 1 : 0),
  read: (reader) => reader.varint() !== 0,
  zero: { make: () => false, is: (value) => !value },
};

/** `string` */
export const text: Codec<string> = {
  wire: wires.bytes,
  write: (writer, value) => writer.text(value),
  read: (reader) => reader.text(),
  zero: { make: () => "", is: (value) => value === "" },
};

/** `string`, one of a few: a word that is not among them is refused. */
export function oneOf<T extends string>(words: readonly T[]): Codec<T> {
  return {
    wire: wires.bytes,
    write: (writer, value) => writer.text(value),
    read: (reader) => {
      const found = reader.text();
      const word = words.find((one) => one === found);
      if (word === undefined) throw damaged(`"${found}" is none of ${words.join(", ")}`);
      return word;
    },
  };
}

/** `bytes`, read as a view of the message. */
export const rawBytes: Codec<Uint8Array> = {
  wire: wires.bytes,
  write: (writer, value) => writer.bytes(value),
  read: (reader) => reader.bytes(),
  zero: { make: () => new Uint8Array(0), is: (value) => value.length === 0 },
};

type Numbers = Uint8Array | Uint32Array | Float64Array | BigInt64Array;

function packed<T extends Numbers>(make: (count: number) => T): Codec<T> {
  const width = make(0).BYTES_PER_ELEMENT;
  return {
    wire: wires.bytes,
    write: (writer, value) => writer.bytes(value),
    read: (reader) => {
      const found = reader.bytes();
      if (found.length % width !== 0) throw damaged("an array ends within a number");
      const array = make(found.length / width);
      new Uint8Array(array.buffer).set(found);
      return array;
    },
    zero: { make: () => make(0), is: (value) => value.length === 0 },
  };
}

/** `bytes`, copied. */
export const u8s = packed((count) => new Uint8Array(count));
/** `repeated fixed32`, packed */
export const u32s = packed((count) => new Uint32Array(count));
/** `repeated double`, packed */
export const f64s = packed((count) => new Float64Array(count));
/** `repeated sfixed64`, packed */
export const i64s = packed((count) => new BigInt64Array(count));
