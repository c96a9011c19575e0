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
 * One declaration per key of the configuration: from it come the type, the YAML key, the flag, the default, the
 * validation, the help and the page of docs. A section is a zod object of such fields; keys are spelled as in YAML.
 *
 * `flag` is written without a dash; a key without one can only be set in the file.
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

/** Declares keys that belong together. */
export function section<S extends z.core.$ZodLooseShape>(help: string, shape: S): Section<S> {
  const schema = z.object(shape);
  noteSection(schema, help);
  return schema;
}

const anyText = z.string();

export function text(
  value: string,
  help: string,
  flag?: string,
  options?: FieldOptions<string>,
): Field<string> {
  return declare(anyText, { ...scalar("text", help, flag), defaultValue: value, ...options });
}

/** A text that is never shown. */
export function secret(help: string, flag?: string): Field<string> {
  return declare(anyText, { ...scalar("text", help, flag), defaultValue: "", secret: true });
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
  return declare(schema, { ...scalar(words.join(" | "), help, flag), defaultValue: value });
}

const booleanText = fromText(parseBoolean);

/** A switch: as a flag it needs no value. */
export function toggle(
  value: boolean,
  help: string,
  flag?: string,
  options?: FieldOptions<boolean>,
): Field<boolean> {
  const note = { ...scalar("boolean", help, flag), kind: "boolean" as const, defaultValue: value };
  return declare(booleanText, { ...note, ...options });
}

const integerText = numeric(parseInteger, String);

export function integer(
  value: number,
  help: string,
  flag?: string,
  options?: NumberOptions,
): Field<number> {
  const note = { ...scalar("integer", help, flag), defaultValue: value };
  return declare(integerText(options), note);
}

const numberText = numeric(parseNumber, String);

export function float(
  value: number,
  help: string,
  flag?: string,
  options?: NumberOptions,
): Field<number> {
  const note = { ...scalar("number", help, flag), defaultValue: value };
  return declare(numberText(options), note);
}

const durationText = numeric(parseDurationMs, formatDurationMs);

/** A time span, held in milliseconds: `30s`, `1h30m`, `7d`. */
export function duration(
  value: string,
  help: string,
  flag?: string,
  options?: NumberOptions,
): Field<number> {
  const note = {
    ...scalar("duration", help, flag),
    defaultValue: must(parseDurationMs(value)),
    format: (ms: unknown) => formatDurationMs(ms as number),
  };
  return declare(durationText(options), note);
}

const sizeText = numeric(parseSizeBytes, (bytes) => String(formatSizeBytes(bytes)));

/** A size, held in bytes: `256KB`, `1.5GB` or a number; powers of 1024. */
export function size(
  value: string,
  help: string,
  flag?: string,
  options?: NumberOptions,
): Field<number> {
  const note = {
    ...scalar("size", help, flag),
    defaultValue: must(parseSizeBytes(value)),
    format: (bytes: unknown) => formatSizeBytes(bytes as number),
  };
  return declare(sizeText(options), note);
}

const timeText = fromText(parseTimeMs);

/** A point in time, held in milliseconds since the epoch; 0 is none. */
export function time(help: string, flag?: string): Field<number> {
  const note = {
    ...scalar("time", help, flag),
    defaultValue: 0,
    format: (ms: unknown) => formatTimeMs(ms as number),
  };
  return declare(timeText, note);
}

const listText = z.union([z.array(z.string()), z.string().transform(splitList)]);

/** Texts: a YAML list, or one text with commas. A flag may be repeated. */
export function list(value: readonly string[], help: string, flag?: string): Field<string[]> {
  const note = { ...scalar("list", help, flag), kind: "list" as const, defaultValue: [...value] };
  return declare(listText, note);
}

/** Any YAML that fits the zod schema given; `type` is what help and docs call it. */
export function data<T>(schema: z.ZodType<T>, value: T, type: string, help: string): Field<T> {
  const note = { ...scalar(type, help, undefined), kind: "data" as const, defaultValue: value };
  return declare(schema, note);
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
  const note = { ...scalar("list of sections", help, undefined), defaultValue: [], items };
  return declare(z.array(items), { ...note, ...options, kind: "sections" });
}

function scalar(type: string, help: string, flag: string | undefined) {
  const note = { kind: "scalar" as const, type, help, format: (value: unknown) => value };
  return flag === undefined ? note : { ...note, flag };
}

function declare<T>(schema: z.ZodType<T>, note: FieldNote): Field<T> {
  // The default is a value of the output type: zod does not run it through the schema.
  const withDefault = z._default(schema, note.defaultValue as never);
  noteField(withDefault, note);
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

/** Schemas of a number within a range, from 0 upward unless it says else; fields without a range share one. */
function numeric(
  parse: (text: string) => Parsed<number>,
  show: (value: number) => string,
): (range?: NumberOptions) => z.ZodType<number> {
  const within = ({ min = 0, max = Number.POSITIVE_INFINITY }: NumberOptions): z.ZodType<number> =>
    fromText((input) => {
      const parsed = parse(input);
      if ("problem" in parsed) return parsed;
      if (parsed.value < min) return { problem: `${show(parsed.value)} is less than ${show(min)}` };
      if (parsed.value > max) return { problem: `${show(parsed.value)} is more than ${show(max)}` };
      return parsed;
    });
  const usual = within({});
  return (range) => (range?.min === undefined && range?.max === undefined ? usual : within(range));
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
