import type { z } from "zod";

/** What is said about a key beside its value. */
export interface FieldOptions<T> {
  /** A value that stops the start, because ignoring it would be unsafe, and what to do instead. */
  readonly refused?: { readonly value: T; readonly why: string };
}

/** What the engine knows of a field beside its zod type. */
export interface FieldNote extends FieldOptions<unknown> {
  /** How the value is written: the first three are one scalar in YAML, or the text of a flag. */
  readonly kind: "scalar" | "boolean" | "list" | "data" | "sections";
  /** As shown by help and docs: `duration`, `true or false`, ... */
  readonly type: string;
  readonly help: string;
  readonly flag?: string;
  readonly secret?: boolean;
  readonly defaultValue: unknown;
  /** Turns the value into what YAML shows. */
  readonly format: (value: unknown) => unknown;
  /** The section of each item, for the kind `sections`. */
  readonly items?: z.ZodObject;
  /** What is wrong with the items of the kind `sections`; undefined when nothing is. */
  readonly check?: (items: never) => string | undefined;
}

// Not zod's own registry: its types unfold the schema of `items` without end.
const fieldNotes = new WeakMap<object, FieldNote>();
const sectionHelp = new WeakMap<object, string>();

export function noteField(schema: object, note: FieldNote): void {
  fieldNotes.set(schema, note);
}

export function noteSection(schema: object, help: string): void {
  sectionHelp.set(schema, help);
}

/** The note of a field; undefined for a section. */
export function noteOf(schema: object): FieldNote | undefined {
  return fieldNotes.get(schema);
}

/** The help of a section; empty when it has none. */
export function sectionHelpOf(schema: object): string {
  return sectionHelp.get(schema) ?? "";
}
