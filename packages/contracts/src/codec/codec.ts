import { damaged, ProtoReader, ProtoWriter, wires } from "@skald/transport/protobuf";
import { adapters } from "./adapters.js";
import { checks } from "./checks.js";
import { messages } from "./schema.js";
import type { Inside, MessageName, Raw } from "./types.js";
import { words } from "./words.js";

/** The bytes of a message, in memory of its own; `sizeBytes` is a guess. */
export function encode<N extends MessageName>(
  name: N,
  value: Inside<N>,
  sizeBytes?: number,
): Uint8Array<ArrayBuffer> {
  return encodeWith(codecOf(name), value, sizeBytes);
}

/** Throws invalid_argument when the bytes are no such message. Typed arrays are copies, `bytes` are views. */
export function decode<N extends MessageName>(name: N, bytes: Uint8Array): Inside<N> {
  return codecOf(name).readFields(new ProtoReader(bytes)) as Inside<N>;
}

/** As `encode` and `decode`, with the fields of the schema: for code that makes its own of them. */
export function encodeRaw<N extends MessageName>(
  name: N,
  value: Raw<N>,
  sizeBytes?: number,
): Uint8Array<ArrayBuffer> {
  return encodeWith(plainCodecOf(name), value, sizeBytes);
}

export function decodeRaw<N extends MessageName>(name: N, bytes: Uint8Array): Raw<N> {
  return plainCodecOf(name).readFields(new ProtoReader(bytes)) as Raw<N>;
}

function encodeWith(codec: MessageCodec, value: unknown, sizeBytes?: number) {
  const writer = new ProtoWriter(sizeBytes);
  codec.writeFields(writer, value);
  return writer.finish();
}

/** How values of one type are written, and read and checked again. */
interface Codec {
  readonly wire: number;
  write(writer: ProtoWriter, value: unknown): void;
  read(reader: ProtoReader): unknown;
  /** The meaning of a field that is left out; a field without it must be there. */
  readonly zero?: { make(): unknown; is(value: unknown): boolean };
}

interface MessageCodec extends Codec {
  writeFields(writer: ProtoWriter, value: unknown): void;
  readFields(reader: ProtoReader): unknown;
}

interface Field extends Codec {
  readonly key: string;
  readonly number: number;
  readonly rule: "one" | "optional" | "repeated";
}

/** Built when a message is first needed: most threads need few of them. */
const codecs = new Map<string, MessageCodec>();
const plainCodecs = new Map<string, MessageCodec>();

function codecOf(name: MessageName): MessageCodec {
  const known = codecs.get(name);
  if (known !== undefined) return known;
  const plain = plainCodecOf(name);
  const { toWire, fromWire } = (adapters as Record<string, AnyAdapter>)[name] ?? {};
  const made =
    toWire === undefined || fromWire === undefined
      ? plain
      : codecBy(
          (writer, value) => plain.writeFields(writer, toWire(value)),
          (reader) => fromWire(plain.readFields(reader)),
        );
  codecs.set(name, made);
  return made;
}

interface AnyAdapter {
  toWire?(value: unknown): unknown;
  fromWire?(wire: unknown): unknown;
}

function plainCodecOf(name: MessageName): MessageCodec {
  const known = plainCodecs.get(name);
  if (known !== undefined) return known;
  const entries = messages[name] as Readonly<Record<string, Entry>> & { readonly oneof?: object };
  const made =
    entries.oneof === undefined
      ? fieldsCodec(fieldsOf(name, entries), (checks as AnyChecks)[name])
      : unionCodec(fieldsOf(name, entries.oneof as Readonly<Record<string, Entry>>));
  plainCodecs.set(name, made);
  return made;
}

type Entry = readonly [number, string, ("optional" | "repeated")?];
type AnyChecks = Readonly<Record<string, (value: unknown) => string | undefined>>;

function fieldsOf(name: string, entries: Readonly<Record<string, Entry>>): readonly Field[] {
  return Object.entries(entries).map(
    ([key, [number, type, rule = "one"]]): Field => ({
      ...valueCodec(`${name}.${key}`, type),
      ...{ key, number },
      rule: rule as Field["rule"],
    }),
  );
}

function valueCodec(path: string, type: string): Codec {
  const list = (words as Readonly<Record<string, readonly string[]>>)[path];
  if (list !== undefined) return wordCodec(list);
  const scalar = (scalars as Readonly<Record<string, Codec>>)[type];
  if (scalar !== undefined) return scalar;
  // The fields of a message are looked up when it is first written or read.
  return codecBy(
    (writer, value) => codecOf(type as MessageName).writeFields(writer, value),
    (reader) => codecOf(type as MessageName).readFields(reader),
  );
}

function codecBy(
  writeFields: MessageCodec["writeFields"],
  readFields: MessageCodec["readFields"],
): MessageCodec {
  return {
    wire: wires.bytes,
    writeFields,
    readFields,
    write: (writer, value) => writer.nested(value, writeFields),
    read: (reader) => reader.nested(readFields),
  };
}

function fieldsCodec(
  fields: readonly Field[],
  check: ((value: unknown) => string | undefined) | undefined,
): MessageCodec {
  const byNumber: (Field | undefined)[] = [];
  for (const field of fields) byNumber[field.number] = field;
  return codecBy(
    (writer, value) => {
      const record = value as Readonly<Record<string, unknown>>;
      for (const field of fields) writeField(writer, field, record[field.key]);
    },
    (reader) => {
      const found: Record<string, unknown> = {};
      while (!reader.isAtEnd) {
        const tag = reader.varint();
        const field = byNumber[Math.floor(tag / 8)];
        if (field === undefined) reader.skip(tag % 8);
        else readField(reader, field, tag % 8, found);
      }
      for (const field of fields) if (found[field.key] === undefined) fill(found, field);
      const problem = check?.(found);
      if (problem !== undefined) throw damaged(problem);
      return found;
    },
  );
}

function writeField(writer: ProtoWriter, field: Field, value: unknown): void {
  const { number, rule, wire, zero } = field;
  if (rule === "repeated") {
    for (const item of value as readonly unknown[]) {
      writer.tag(number, wire);
      field.write(writer, item);
    }
    return;
  }
  const isLeftOut = rule === "optional" ? value === undefined : zero?.is(value);
  if (isLeftOut === true) return;
  writer.tag(number, wire);
  field.write(writer, value);
}

function readField(
  reader: ProtoReader,
  field: Field,
  wire: number,
  found: Record<string, unknown>,
): void {
  const { key, rule } = field;
  if (rule !== "repeated") {
    if (wire !== field.wire) throw damaged(`${key} has the wrong kind`);
    found[key] = field.read(reader);
    return;
  }
  found[key] ??= [];
  const list = found[key] as unknown[];
  if (wire === field.wire) list.push(field.read(reader));
  // Other programs pack numbers.
  else if (wire === wires.bytes && field.wire === wires.varint)
    reader.nested((packed) => {
      while (!packed.isAtEnd) list.push(field.read(packed));
    });
  else throw damaged(`${key} has the wrong kind`);
}

function fill(found: Record<string, unknown>, { key, rule, zero }: Field): void {
  if (rule === "repeated") found[key] = [];
  else if (rule === "one") {
    if (zero === undefined) throw damaged(`it lacks ${key}`);
    found[key] = zero.make();
  }
}

/** A message with one field, which is the member of its kind. A kind that is not known is refused. */
function unionCodec(members: readonly Field[]): MessageCodec {
  const byKind = new Map(members.map((member) => [member.key, member]));
  const byNumber = new Map(members.map((member) => [member.number, member]));
  return codecBy(
    (writer, value) => {
      const member = byKind.get((value as { readonly kind: string }).kind)!;
      writer.tag(member.number, member.wire);
      member.write(writer, value);
    },
    (reader) => {
      let found: object | undefined;
      while (!reader.isAtEnd) {
        const tag = reader.varint();
        const member = byNumber.get(Math.floor(tag / 8));
        if (member === undefined) reader.skip(tag % 8);
        else if (tag % 8 !== member.wire) throw damaged(`${member.key} has the wrong kind`);
        else found = { kind: member.key, ...(member.read(reader) as object) };
      }
      if (found === undefined) throw damaged("it is of no known kind");
      return found;
    },
  );
}

/** A text that is one of a few words. */
function wordCodec(list: readonly string[]): Codec {
  return {
    wire: wires.bytes,
    write: (writer, value) => writer.text(value as string),
    read: (reader) => {
      const found = reader.text();
      if (!list.includes(found)) throw damaged(`"${found}" is none of ${list.join(", ")}`);
      return found;
    },
  };
}

/** The scalar types of schema.ts. */
const scalars = {
  // Whole numbers from 0 to 2^53 - 1.
  uint: scalar<number>({
    wire: wires.varint,
    write: (writer, value) => writer.varint(value),
    read: (reader) => reader.varint(),
    zero: { make: () => 0, is: (value) => value === 0 },
  }),
  double: scalar<number>({
    wire: wires.fixed64,
    write: (writer, value) => writer.double(value),
    read: (reader) => reader.double(),
    zero: { make: () => 0, is: (value) => Object.is(value, 0) },
  }),
  int64: scalar<bigint>({
    wire: wires.fixed64,
    write: (writer, value) => writer.int64(value),
    read: (reader) => reader.int64(),
    zero: { make: () => 0n, is: (value) => value === 0n },
  }),
  bool: scalar<boolean>({
    wire: wires.varint,
    write: (writer, value) => writer.varint(value ? 1 : 0),
    read: (reader) => reader.varint() !== 0,
    zero: { make: () => false, is: (value) => !value },
  }),
  string: scalar<string>({
    wire: wires.bytes,
    write: (writer, value) => writer.text(value),
    read: (reader) => reader.text(),
    zero: { make: () => "", is: (value) => value === "" },
  }),
  bytes: scalar<Uint8Array>({
    wire: wires.bytes,
    write: (writer, value) => writer.bytes(value),
    read: (reader) => reader.bytes(),
    zero: { make: () => new Uint8Array(0), is: (value) => value.length === 0 },
  }),
  u32s: packed((count) => new Uint32Array(count)),
  f64s: packed((count) => new Float64Array(count)),
  i64s: packed((count) => new BigInt64Array(count)),
};

interface TypedCodec<T> {
  readonly wire: number;
  write(writer: ProtoWriter, value: T): void;
  read(reader: ProtoReader): T;
  readonly zero: { make(): T; is(value: T): boolean };
}

function scalar<T>(codec: TypedCodec<T>): Codec {
  return codec as unknown as Codec;
}

/** A packed list of numbers of a fixed width is the memory of a typed array, as protobuf and these machines are little-endian. */
function packed<T extends Uint32Array | Float64Array | BigInt64Array>(
  make: (count: number) => T,
): Codec {
  const width = make(0).BYTES_PER_ELEMENT;
  return scalar<T>({
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
  });
}
