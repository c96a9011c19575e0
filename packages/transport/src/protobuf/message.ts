import type { Codec, MessageCodec } from "./codec.js";
import { messageOf } from "./codec.js";
import { damaged, type ProtoReader } from "./reader.js";
import type { ProtoWriter } from "./writer.js";

/** A field of a message: its number, which never changes its meaning, and its codec. */
export interface Field<T> {
  readonly kind: "one";
  readonly number: number;
  readonly codec: Codec<T>;
}

/** A field that may be absent. */
export interface OptionalField<T> {
  readonly kind: "optional";
  readonly number: number;
  readonly codec: Codec<T>;
}

/** A field that may be there often, in order. */
export interface RepeatedField<T> {
  readonly kind: "repeated";
  readonly number: number;
  readonly codec: Codec<T>;
}

export function field<T>(number: number, codec: Codec<T>): Field<T> {
  return { kind: "one", number, codec };
}

export function optional<T>(number: number, codec: Codec<T>): OptionalField<T> {
  return { kind: "optional", number, codec };
}

export function repeated<T>(number: number, codec: Codec<T>): RepeatedField<T> {
  return { kind: "repeated", number, codec };
}

/** The fields of a type: the compiler knows when one is missing, or is optional in one place only. */
export type FieldsOf<T> = {
  readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K>
    ? OptionalField<NonNullable<T[K]>>
    : T[K] extends readonly (infer Item)[]
      ? RepeatedField<Item> | Field<T[K]>
      : Field<T[K]>;
};

interface AnyField {
  readonly kind: "one" | "optional" | "repeated";
  readonly number: number;
  readonly codec: Codec<unknown>;
}

/**
 * A message of protobuf (proto3): plain values may be left out where they are zero, fields that are not known are passed
 * over. `check` says what is wrong with a value whose fields are each right.
 */
export function message<T extends object>(
  fields: FieldsOf<T>,
  check?: (value: T) => string | undefined,
): MessageCodec<T> {
  const entries = Object.entries(fields) as [string, AnyField][];
  const byNumber: ([string, AnyField] | undefined)[] = [];
  for (const entry of entries) byNumber[entry[1].number] = entry;
  return messageOf<T>(
    (writer, value) => {
      for (const [name, one] of entries) {
        writeField(writer, one, (value as Record<string, unknown>)[name]);
      }
    },
    (reader) => {
      const found: Record<string, unknown> = {};
      while (!reader.isAtEnd) readField(reader, byNumber, found);
      for (const [name, one] of entries) if (found[name] === undefined) fill(found, name, one);
      const problem = check?.(found as T);
      if (problem !== undefined) throw damaged(problem);
      return found as T;
    },
  );
}

function writeField(writer: ProtoWriter, { kind, number, codec }: AnyField, value: unknown): void {
  if (kind === "repeated") {
    for (const item of value as readonly unknown[]) {
      writer.tag(number, codec.wire);
      codec.write(writer, item);
    }
    return;
  }
  const isLeftOut = kind === "optional" ? value === undefined : codec.zero?.is(value);
  if (isLeftOut === true) return;
  writer.tag(number, codec.wire);
  codec.write(writer, value);
}

function readField(
  reader: ProtoReader,
  byNumber: readonly ([string, AnyField] | undefined)[],
  found: Record<string, unknown>,
): void {
  const tag = reader.varint();
  const wire = tag % 8;
  const entry = byNumber[Math.floor(tag / 8)];
  if (entry === undefined) {
    reader.skip(wire);
    return;
  }
  const [name, { kind, codec }] = entry;
  if (wire !== codec.wire) throw damaged(`${name} has the wrong kind`);
  const value = codec.read(reader);
  if (kind !== "repeated") found[name] = value;
  else if (found[name] === undefined) found[name] = [value];
  else (found[name] as unknown[]).push(value);
}

function fill(found: Record<string, unknown>, name: string, { kind, codec }: AnyField): void {
  if (kind === "repeated") found[name] = [];
  else if (kind === "one") {
    if (codec.zero === undefined) throw damaged(`it lacks ${name}`);
    found[name] = codec.zero.make();
  }
}

/** What a union has of one kind. */
export type Member<T, Kind> = T extends { readonly kind: Kind } ? Omit<T, "kind"> : never;

/** The number and the fields of each kind of a union. */
export type MembersOf<T extends { readonly kind: string }> = {
  readonly [Kind in T["kind"]]: readonly [number, MessageCodec<Member<T, Kind>>];
};

/** A `oneof`: a message with one field, which is the member of that kind. A kind that is not known is refused. */
export function union<T extends { readonly kind: string }>(members: MembersOf<T>): MessageCodec<T> {
  const entries = Object.entries(members) as [string, readonly [number, MessageCodec<object>]][];
  const byKind = new Map(entries);
  const byNumber = new Map(entries.map(([kind, [number, codec]]) => [number, { kind, codec }]));
  return messageOf<T>(
    (writer, value) => {
      const [number, codec] = byKind.get(value.kind)!;
      writer.tag(number, codec.wire);
      codec.write(writer, value);
    },
    (reader) => {
      let found: object | undefined;
      while (!reader.isAtEnd) {
        const tag = reader.varint();
        const member = byNumber.get(Math.floor(tag / 8));
        if (member === undefined) reader.skip(tag % 8);
        else if (tag % 8 !== member.codec.wire) throw damaged(`${member.kind} has the wrong kind`);
        else found = { kind: member.kind, ...member.codec.read(reader) };
      }
      if (found === undefined) throw damaged("it is of no known kind");
      return found as T;
    },
  );
}

/** A message without fields. */
export const empty: MessageCodec<object> = message<object>({});
