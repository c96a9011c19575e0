/**
 * Joins Parquet files of one schema: their row groups one behind the other, and one footer that names them all. Nothing is
 * decoded but the footers, which are structs of Thrift's compact protocol.
 *
 * Source: the Parquet format's `parquet.thrift`, and `thrift-compact-protocol.md` of Apache Thrift.
 */
export class ParquetJoin {
  #footer: Struct | undefined;
  /** The footer of a file without rows, for when there is no other. */
  #empty: Struct | undefined;
  readonly #groups: Value[] = [];
  #rows = 0n;
  /** Bytes of the joined file so far; the mark at its start is written with the first part. */
  #size = 0;

  /** Rows of a file, by its footer. */
  static rowsIn(file: Uint8Array<ArrayBuffer>): bigint {
    return numberIn(split(file).footer, metadata.rows);
  }

  /** What the next file adds. Throws an error when it is no Parquet file. */
  add(file: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
    const { footer, body } = split(file);
    const shift = BigInt(this.#size === 0 ? 0 : this.#size - mark.length);
    for (const found of listIn(footer, metadata.groups) as Struct[]) {
      shiftGroup(found, shift);
      for (const field of found)
        if (field.id === group.ordinal) field.value = BigInt(this.#groups.length);
      this.#groups.push(found);
    }
    this.#rows += numberIn(footer, metadata.rows);
    // A list without items may not say what type they would have.
    if (this.#groups.length > 0) this.#footer ??= footer;
    this.#empty ??= footer;
    const isFirst = this.#size === 0;
    this.#size += body.length + (isFirst ? mark.length : 0);
    return isFirst ? [mark, body] : [body];
  }

  /** The end of the joined file. Throws an error when nothing was added. */
  end(): Uint8Array<ArrayBuffer>[] {
    const last = this.#footer ?? this.#empty;
    if (last === undefined) throw new Error("there is no part of a Parquet file");
    for (const field of last) {
      if (field.id === metadata.rows) field.value = this.#rows;
      if (field.id === metadata.groups)
        field.value = { type: (field.value as List).type, items: this.#groups };
    }
    const footer = encode(last);
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, footer.length, true);
    return [footer, length, mark];
  }
}

const mark = new TextEncoder().encode("PAR1");
/** Ids of fields that are read or changed. */
const metadata = { rows: 3, groups: 4 };
const group = { columns: 1, offset: 5, ordinal: 7 };
const column = { offset: 2, about: 3, offsetIndex: 4, columnIndex: 6 };
const about = { pages: 9, indexes: 10, dictionary: 11, bloom: 14 };

function split(file: Uint8Array<ArrayBuffer>): {
  footer: Struct;
  body: Uint8Array<ArrayBuffer>;
} {
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const isFile = file.length > 12 && view.getUint32(file.length - 4, true) === 0x31524150;
  if (!isFile) throw new Error("the server's answer is no Parquet file");
  const end = file.length - 8;
  const start = end - view.getUint32(end, true);
  const footer = new Decoder(file.subarray(start, end)).struct();
  return { footer, body: file.subarray(mark.length, start) };
}

/** Moves all places of a row group by a number of bytes. */
function shiftGroup(found: Struct, shift: bigint): void {
  const move = (struct: Struct, ids: readonly number[]) => {
    for (const field of struct) {
      if (ids.includes(field.id)) field.value = (field.value as bigint) + shift;
    }
  };
  move(found, [group.offset]);
  for (const one of listIn(found, group.columns) as Struct[]) {
    move(one, [column.offset, column.offsetIndex, column.columnIndex]);
    const inner = one.find(({ id }) => id === column.about)?.value as Struct | undefined;
    if (inner !== undefined) move(inner, Object.values(about));
  }
}

function listIn(struct: Struct, wanted: number): readonly Value[] {
  return (struct.find(({ id }) => id === wanted)?.value as List | undefined)?.items ?? [];
}

function numberIn(struct: Struct, wanted: number): bigint {
  return (struct.find(({ id }) => id === wanted)?.value as bigint | undefined) ?? 0n;
}

/** Whole numbers, bytes of texts and doubles, lists and structs; a boolean is its type. */
type Value = bigint | Uint8Array | List | Struct | undefined;
type Struct = { readonly id: number; readonly type: number; value: Value }[];
interface List {
  readonly type: number;
  readonly items: readonly Value[];
}

const types = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
};
const structType = 12;

class Decoder {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(): Struct {
    const fields: Struct = [];
    for (let id = 0; ; ) {
      const head = this.#byte();
      if (head === 0) return fields;
      const type = head & 15;
      id = head >> 4 === 0 ? Number(zigzag(this.#varint())) : id + (head >> 4);
      fields.push({ id, type, value: type <= types.false ? undefined : this.#value(type) });
    }
  }

  #value(type: number): Value {
    if (type === structType) return this.struct();
    if (type === types.list || type === types.set) return this.#list();
    if (type === types.binary) return this.#take(Number(this.#varint()));
    if (type === types.double) return this.#take(8);
    // A boolean of a list is a byte too.
    if (type <= types.byte) return BigInt(this.#byte());
    if (type <= types.i64) return zigzag(this.#varint());
    throw new Error("the footer of the Parquet file has an unknown type");
  }

  #list(): List {
    const head = this.#byte();
    const type = head & 15;
    const count = head >> 4 === 15 ? Number(this.#varint()) : head >> 4;
    return { type, items: Array.from({ length: count }, () => this.#value(type)) };
  }

  #take(length: number): Uint8Array {
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new Error("the footer of the Parquet file ends too early");
    return byte;
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
}

function zigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}

function encode(struct: Struct): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  writeStruct(bytes, struct);
  return Uint8Array.from(bytes);
}

function writeStruct(bytes: number[], struct: Struct): void {
  let last = 0;
  for (const { id, type, value } of struct) {
    const step = id - last;
    if (step > 0 && step < 16) bytes.push((step << 4) | type);
    else {
      bytes.push(type);
      writeSigned(bytes, BigInt(id));
    }
    last = id;
    if (type > types.false) writeValue(bytes, type, value);
  }
  bytes.push(0);
}

function writeValue(bytes: number[], type: number, value: Value): void {
  if (type === structType) writeStruct(bytes, value as Struct);
  else if (type === types.list || type === types.set) writeList(bytes, value as List);
  else if (type <= types.byte) bytes.push(Number(value));
  else if (type <= types.i64) writeSigned(bytes, value as bigint);
  else {
    const data = value as Uint8Array;
    if (type === types.binary) writeVarint(bytes, BigInt(data.length));
    for (const byte of data) bytes.push(byte);
  }
}

function writeList(bytes: number[], { type, items }: List): void {
  if (items.length < 15) bytes.push((items.length << 4) | type);
  else {
    bytes.push(0xf0 | type);
    writeVarint(bytes, BigInt(items.length));
  }
  for (const item of items) writeValue(bytes, type, item);
}

function writeSigned(bytes: number[], value: bigint): void {
  writeVarint(bytes, value < 0n ? -value * 2n - 1n : value * 2n);
}

function writeVarint(bytes: number[], value: bigint): void {
  for (; value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  bytes.push(Number(value));
}
