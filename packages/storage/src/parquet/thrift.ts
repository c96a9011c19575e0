import { internal } from "@skald/model";
import { ByteWriter } from "../bytes.js";

/**
 * Writes structs in Thrift's compact protocol: only the types that Parquet metadata uses. Fields must be written in
 * ascending order of their ids.
 *
 *     field header   delta of id (4 bits) | type (4 bits); the delta is never above 15 here
 *     list header    size (4 bits) | element type (4 bits); size 15 means that a varint follows
 */
export class ThriftWriter {
  readonly out: ByteWriter;
  /** Last field id of every open struct. */
  readonly #lastIds: number[] = [0];

  constructor(out: ByteWriter = new ByteWriter()) {
    this.out = out;
  }

  i16(id: number, value: number): void {
    this.#header(id, 4);
    this.out.zigzag(value);
  }

  i32(id: number, value: number): void {
    this.#header(id, 5);
    this.out.zigzag(value);
  }

  i64(id: number, value: number): void {
    this.#header(id, 6);
    this.out.zigzag(value);
  }

  bool(id: number, value: boolean): void {
    this.#header(id, value ? 1 : 2);
  }

  binary(id: number, value: Uint8Array): void {
    this.#header(id, 8);
    this.#bytes(value);
  }

  text(id: number, value: string): void {
    this.binary(id, Buffer.from(value, "utf8"));
  }

  struct(id: number, write: () => void): void {
    this.#header(id, 12);
    this.#body(write);
  }

  i32List(id: number, values: readonly number[]): void {
    this.#numbers(id, 5, values);
  }

  i64List(id: number, values: readonly number[]): void {
    this.#numbers(id, 6, values);
  }

  boolList(id: number, values: readonly boolean[]): void {
    this.#list(id, 1, values.length);
    for (const value of values) this.out.u8(value ? 1 : 2);
  }

  binaryList(id: number, values: readonly Uint8Array[]): void {
    this.#list(id, 8, values.length);
    for (const value of values) this.#bytes(value);
  }

  structList<T>(id: number, values: readonly T[], write: (value: T) => void): void {
    this.#list(id, 12, values.length);
    for (const value of values) this.#body(() => write(value));
  }

  /** Ends the outermost struct; the writer may then begin another. */
  end(): void {
    this.out.u8(0);
    this.#lastIds[0] = 0;
  }

  #body(write: () => void): void {
    this.#lastIds.push(0);
    write();
    this.out.u8(0);
    this.#lastIds.pop();
  }

  #bytes(value: Uint8Array): void {
    this.out.varint(value.byteLength);
    this.out.append(value);
  }

  #numbers(id: number, elementType: number, values: readonly number[]): void {
    this.#list(id, elementType, values.length);
    for (const value of values) this.out.zigzag(value);
  }

  #list(id: number, elementType: number, size: number): void {
    this.#header(id, 9);
    const short = size < 15;
    this.out.u8(((short ? size : 15) << 4) | elementType);
    if (!short) this.out.varint(size);
  }

  #header(id: number, type: number): void {
    const top = this.#lastIds.length - 1;
    const delta = id - this.#lastIds[top]!;
    if (delta < 1 || delta > 15) throw new Error(`field ${id} is out of order`);
    this.#lastIds[top] = id;
    this.out.u8((delta << 4) | type);
  }
}

/** A value of Thrift's compact protocol: numbers are exact up to 53 bits, a text is its bytes. */
type ThriftValue = number | boolean | Uint8Array | readonly ThriftValue[] | ThriftStruct;

/** A struct that was read, with its fields by their ids. Asking for an absent field, or another type, throws `internal`. */
export class ThriftStruct {
  readonly #fields: ReadonlyMap<number, ThriftValue>;
  readonly #types: ReadonlyMap<number, number>;

  /** Values and types of the fields by their ids. */
  constructor(fields: ReadonlyMap<number, ThriftValue>, types: ReadonlyMap<number, number>) {
    this.#fields = fields;
    this.#types = types;
  }

  /** Ids of the fields, in the order in which they stand. */
  get ids(): readonly number[] {
    return [...this.#fields.keys()];
  }

  has(id: number): boolean {
    return this.#fields.has(id);
  }

  int(id: number): number {
    const value = this.#fields.get(id);
    return typeof value === "number" ? value : fail(`has no number ${id}`);
  }

  /** A number that was written in 32 bits. */
  i32(id: number): number {
    const value = this.int(id);
    const isWide = this.#types.get(id) !== 5 || value !== (value | 0);
    return isWide ? fail(`has no number ${id} of 32 bits`) : value;
  }

  bool(id: number): boolean {
    const value = this.#fields.get(id);
    return typeof value === "boolean" ? value : fail(`has no boolean ${id}`);
  }

  text(id: number): string {
    const value = this.#fields.get(id);
    return value instanceof Uint8Array ? Buffer.from(value).toString() : fail(`has no text ${id}`);
  }

  struct(id: number): ThriftStruct {
    const value = this.#fields.get(id);
    return value instanceof ThriftStruct ? value : fail(`has no struct ${id}`);
  }

  structs(id: number): readonly ThriftStruct[] {
    const value = this.#fields.get(id);
    if (!Array.isArray(value)) return fail(`has no list ${id}`);
    return value.map((one) => (one instanceof ThriftStruct ? one : fail(`list ${id} is mixed`)));
  }
}

/** Reads the struct at the start of the bytes and returns where it ends. Throws `internal` when there is none. */
export function readThrift(bytes: Uint8Array): { struct: ThriftStruct; end: number } {
  const reader = new Reader(bytes);
  return { struct: reader.struct(0), end: reader.at };
}

/** Deeper than any Parquet metadata. */
const maxDepth = 16;

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(depth: number): ThriftStruct {
    if (depth > maxDepth) fail("is too deep");
    const fields = new Map<number, ThriftValue>();
    const types = new Map<number, number>();
    let id = 0;
    for (let head = this.#u8(); head !== 0; head = this.#u8()) {
      // Parquet's fields are numbered so densely that no header needs an id of its own.
      if (head >>> 4 === 0) fail("has a field without a number");
      id += head >>> 4;
      const type = head & 15;
      types.set(id, type);
      fields.set(id, type === 1 || type === 2 ? type === 1 : this.#value(type, depth));
    }
    return new ThriftStruct(fields, types);
  }

  #value(type: number, depth: number): ThriftValue {
    switch (type) {
      case 4:
      case 5:
      case 6:
        return this.#zigzag();
      case 8:
        return this.#take(this.#varint());
      case 9:
        return this.#list(depth);
      case 12:
        return this.struct(depth + 1);
      default:
        return fail(`has a field of type ${type}`);
    }
  }

  #list(depth: number): ThriftValue[] {
    const head = this.#u8();
    const size = head >>> 4 === 15 ? this.#varint() : head >>> 4;
    const type = head & 15;
    if (size > this.#bytes.length) fail("has a list that is too long");
    return Array.from({ length: size }, () =>
      type === 1 || type === 2 ? this.#u8() === 1 : this.#value(type, depth),
    );
  }

  #zigzag(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  #varint(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      const byte = this.#u8();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    return fail("has a number that is too large");
  }

  #take(length: number): Uint8Array {
    const from = this.at;
    this.at += length;
    if (this.at > this.#bytes.length) fail("is cut short");
    return this.#bytes.subarray(from, this.at);
  }

  #u8(): number {
    return this.#bytes[this.at++] ?? fail("is cut short");
  }
}

function fail(what: string): never {
  throw internal(`parquet metadata ${what}`);
}
