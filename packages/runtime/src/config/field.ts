import { z } from "zod";
import {
  formatDurationMs,
  formatSizeBytes,
  formatTimeMs,
  type Parsed,
  parseBoolean,
  parseDurationMs,
  parseInteger,
  parseNumber,
  parseSizeBytes,
  parseTimeMs,
  splitList,
} from "./value.js";

/**
 * One declaration per key of the configuration gives its type, YAML key, flag, default, validation, help and line in the
 * docs. A section is a zod object of such fields; keys are spelled as in YAML.
 *
 * A flag is written without a dash. It follows from the key where the section has a prefix of flags; a key without a flag can
 * only be set in the file.
 */
export type Field<T> = z.ZodType<T>;

/** Keys that belong together. */
export type Section<S extends z.core.$ZodLooseShape> = z.ZodObject<S>;

/** The object that a section becomes. */
export type Values<S extends z.ZodType> = z.infer<S>;

/** Smallest and largest value that is accepted; numbers and times are not negative unless `min` says so. */
export interface NumberOptions {
  readonly min?: number;
  readonly max?: number;
}

/** Declares keys that belong together; a prefix gives them flags, see `flagged`. */
export function section<S extends z.core.$ZodLooseShape>(
  help: string,
  shape: S,
  flagPrefix?: string,
): Section<S> {
  const schema = z.object(flagPrefix === undefined ? shape : flagged(flagPrefix, shape));
  sectionHelp.set(schema, help);
  return schema;
}

/**
 * Gives every key without a flag the flag `<prefix><key>`, written with dashes; keys of a section within it
 * `<prefix><section>.<key>`. Lists of sections and free data have none.
 */
export function flagged<S extends z.core.$ZodLooseShape>(prefix: string, shape: S): S {
  for (const [key, schema] of Object.entries(shape)) {
    const flag = prefix + key.replaceAll("_", "-");
    const note = fieldNotes.get(schema);
    if (note === undefined) flagged(`${flag}.`, (schema as unknown as z.ZodObject).shape);
    else if (note.flag === undefined && note.kind !== "data" && note.kind !== "sections")
      fieldNotes.set(schema, { ...note, flag });
  }
  return shape;
}

const anyText = z.string();

export function text(
  value: string,
  help: string,
  flag?: string | FieldOptions<string>,
  options?: FieldOptions<string>,
): Field<string> {
  const note = { ...scalar("text", help), ...given(flag, options), defaultValue: value };
  return declare(anyText, note);
}

/** A text that is never shown. */
export function secret(help: string, flag?: string): Field<string> {
  const note = { ...scalar("text", help), ...given(flag), defaultValue: "", secret: true };
  return declare(anyText, note);
}

/** One of a few words. */
export function choice<const T extends string>(
  value: NoInfer<T>,
  words: readonly T[],
  help: string,
  flag?: string,
): Field<T> {
  const known: readonly string[] = words;
  const schema = fromText((word) =>
    known.includes(word)
      ? { value: word as T }
      : { problem: `"${word}" is not one of ${words.map((w) => w || '""').join(", ")}` },
  );
  const note = { ...scalar(words.join(" | "), help), ...given(flag), defaultValue: value };
  return declare(schema, note);
}

const booleanText = fromText(parseBoolean);

/** A switch: as a flag it needs no value. */
export function toggle(
  value: boolean,
  help: string,
  flag?: string | FieldOptions<boolean>,
  options?: FieldOptions<boolean>,
): Field<boolean> {
  const note = { ...scalar("boolean", help), ...given(flag, options), defaultValue: value };
  return declare(booleanText, { ...note, kind: "boolean" });
}

export const integer = numeric<number>("integer", parseInteger, (value) => value);
export const float = numeric<number>("number", parseNumber, (value) => value);
/** A time span in milliseconds: `30s`, `1h30m`, `7d`. */
export const duration = numeric<string>("duration", parseDurationMs, formatDurationMs);
/** A size in bytes: `256KB`, `1.5GB` or a number; powers of 1024. */
export const size = numeric<string>("size", parseSizeBytes, formatSizeBytes);

const timeText = fromText(parseTimeMs);

/** A point in time in milliseconds since the epoch; 0 is none. */
export function time(help: string, flag?: string): Field<number> {
  const format = (ms: unknown) => formatTimeMs(ms as number);
  return declare(timeText, { ...scalar("time", help), ...given(flag), defaultValue: 0, format });
}

const listText = z.union([z.array(z.string()), z.string().transform(splitList)]);

/** Texts: a YAML list, or one text with commas. A flag may be repeated. */
export function list(value: readonly string[], help: string, flag?: string): Field<string[]> {
  const note = { ...scalar("list", help), ...given(flag), defaultValue: [...value] };
  return declare(listText, { ...note, kind: "list" });
}

/** Any YAML that fits the zod schema given; `type` is what help and docs call it. */
export function data<T>(schema: z.ZodType<T>, value: T, type: string, help: string): Field<T> {
  return declare(schema, { ...scalar(type, help), kind: "data", defaultValue: value });
}

const anyMap = z.record(z.string(), z.unknown());

/** A map whose keys are not declared. */
export function map(help: string): Field<Record<string, unknown>> {
  return data(anyMap, {}, "map", help);
}

/** A list of such maps. */
export function maps(help: string): Field<Record<string, unknown>[]> {
  return data(z.array(anyMap), [], "list of maps", help);
}

/** Such maps by names that the user chooses. */
export function mapOfMaps(help: string): Field<Record<string, Record<string, unknown>>> {
  return data(z.record(z.string(), anyMap), {}, "map of maps", help);
}

/** Texts by name. */
export function textMap(help: string): Field<Record<string, string>> {
  return data(z.record(z.string(), z.string()), {}, "map of texts", help);
}

/** `check` returns what is wrong with the items together. */
export interface SectionsOptions<T> {
  readonly check?: (items: readonly T[]) => string | undefined;
}

/** A YAML list of sections of one kind. */
export function sections<S extends z.ZodObject>(
  items: S,
  help: string,
  options: SectionsOptions<z.infer<S>> = {},
): Field<z.infer<S>[]> {
  const note = { ...scalar("list of sections", help), defaultValue: [], items };
  return declare(z.array(items), { ...note, ...options, kind: "sections" });
}

function scalar(type: string, help: string) {
  return { kind: "scalar" as const, type, help, format: (value: unknown) => value };
}

/** The flag and the options of a declaration; either may be left out. */
function given<Options extends object>(flag?: string | Options, options?: Options) {
  return typeof flag === "string" ? { ...options, flag } : { ...flag, ...options };
}

function declare<T>(schema: z.ZodType<T>, note: FieldNote): Field<T> {
  // The default is a value of the output type: zod does not run it through the schema.
  const withDefault = z._default(schema, note.defaultValue as never);
  fieldNotes.set(withDefault, note);
  return withDefault as unknown as Field<T>;
}

function fromText<T>(parse: (text: string) => Parsed<T>): z.ZodType<T> {
  return z.string().transform((input, context): T => {
    const parsed = parse(input);
    if ("value" in parsed) return parsed.value;
    context.addIssue({ code: "custom", message: parsed.problem });
    return z.NEVER;
  }) as unknown as z.ZodType<T>;
}

/** Declares numbers of a kind, from 0 up unless the options say otherwise; fields without a range share one schema. */
function numeric<Value extends string | number>(
  type: string,
  parse: (text: string) => Parsed<number>,
  show: (value: number) => string | number,
) {
  const within = ({ min = 0, max = Number.POSITIVE_INFINITY }: NumberOptions): z.ZodType<number> =>
    fromText((input) => {
      const parsed = parse(input);
      if ("problem" in parsed) return parsed;
      if (parsed.value < min) return { problem: `${show(parsed.value)} is less than ${show(min)}` };
      if (parsed.value > max) return { problem: `${show(parsed.value)} is more than ${show(max)}` };
      return parsed;
    });
  const usual = within({});
  const format = (value: unknown) => show(value as number);
  return (
    value: Value,
    help: string,
    flag?: string | NumberOptions,
    options?: NumberOptions,
  ): Field<number> => {
    const { min, max, ...named }: NumberOptions & { flag?: string } = given(flag, options);
    const range = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
    const schema = min === undefined && max === undefined ? usual : within(range);
    const defaultValue = must(parse(String(value)));
    return declare(schema, { ...scalar(type, help), ...named, defaultValue, format });
  };
}

function must<T>(parsed: Parsed<T>): T {
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed.value;
}

/** Options of a key. */
export interface FieldOptions<T> {
  /** A value that stops the start, because ignoring it would be unsafe, and what to do instead. */
  readonly refused?: { readonly value: T; readonly why: string };
}

/** The facts of a field beside its zod type. */
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

/** The note of a field; undefined for a section. */
export function noteOf(schema: object): FieldNote | undefined {
  return fieldNotes.get(schema);
}

/** The help of a section; empty when it has none. */
export function sectionHelpOf(schema: object): string {
  return sectionHelp.get(schema) ?? "";
}
