import type { z } from "zod";

/** What is said about a key beside its value. */
export interface FieldOptions<T> {
  /** Why the key changes nothing in this version: whoever sets it is warned, and the docs say so. */
  readonly unused?: string;
  /** Of an unused key, whether a value beside the default holds all the same, so that nobody is warned of it. */
  readonly holds?: (value: T) => boolean;
  /** Of a key in a section without effect: it has one all the same. */
  readonly used?: boolean;
  /** What to do instead: any value but the default stops the start, because ignoring it would be unsafe. */
  readonly refused?: string;
}

/** What is said about a section beside its keys; `unused` and `refused` hold for all of them. */
export interface SectionOptions extends Pick<FieldOptions<never>, "unused" | "refused" | "used"> {
  /** Keys that are not declared and accepted with whatever they hold, and why; `*` in a name is any part of it. */
  readonly ignored?: Readonly<Record<string, string | IgnoredSection>>;
  /** Flags, without a dash, that are accepted and do nothing, and why. */
  readonly ignoredFlags?: Readonly<Record<string, string>>;
}

/** A section of which nothing is known. */
export interface IgnoredSection {
  readonly why: string;
  /** A key of it that turns it on: nobody is warned unless that is true. */
  readonly switch: string;
}

/** What the engine knows of a field beside its zod type. */
export interface FieldNote extends FieldOptions<unknown> {
  /** How the value is written: the first three are one scalar in YAML, or the text of a flag. */
  readonly kind: "scalar" | "boolean" | "list" | "data" | "sections" | "sectionMap";
  /** As shown by help and docs: `duration`, `true or false`, ... */
  readonly type: string;
  readonly help: string;
  readonly flag?: string;
  readonly secret?: boolean;
  readonly defaultValue: unknown;
  /** Turns the value into what YAML shows. */
  readonly format: (value: unknown) => unknown;
  /** The section of each item, for the kinds `sections` and `sectionMap`. */
  readonly items?: z.ZodObject;
  /** What is wrong with the items of the kind `sections`; undefined when nothing is. */
  readonly check?: (items: never) => string | undefined;
}

/** What the engine knows of a section beside its keys. */
export interface SectionNote extends SectionOptions {
  readonly help: string;
}

// Not zod's own registry: its types unfold the schema of `items` without end.
const fieldNotes = new WeakMap<object, FieldNote>();
const sectionNotes = new WeakMap<object, SectionNote>();

export function noteField(schema: object, note: FieldNote): void {
  fieldNotes.set(schema, note);
}

export function noteSection(schema: object, note: SectionNote): void {
  sectionNotes.set(schema, note);
}

/** The note of a field; undefined for a section. */
export function noteOf(schema: object): FieldNote | undefined {
  return fieldNotes.get(schema);
}

export function sectionNoteOf(schema: object): SectionNote {
  return sectionNotes.get(schema) ?? { help: "" };
}
