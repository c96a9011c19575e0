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
    this.#list(id, 5, values.length);
    for (const value of values) this.out.zigzag(value);
  }

  i64List(id: number, values: readonly number[]): void {
    this.#list(id, 6, values.length);
    for (const value of values) this.out.zigzag(value);
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
