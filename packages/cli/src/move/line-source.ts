import type { TimeRange } from "@skald/model";
import { Failure } from "../shell/command.js";
import { LineParser, parseLogTime } from "./line-formats.js";

/** How lines become rows: see the flags of `skald push`. */
export interface LineOptions {
  readonly format: string;
  /** `NAME=VALUE` */
  readonly label: readonly string[];
  /** `[NAME=]FIELD` */
  readonly "label-from": readonly string[];
  readonly "metadata-from": readonly string[];
  /** Empty: one of the usual names. */
  readonly "time-field": string;
}

/** The part of a push that one line makes. */
export interface Row {
  readonly labels: Readonly<Record<string, string>>;
  readonly ns: bigint;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Turns lines of one file into rows. Lines of one time are 1 ns apart, so that equal ones are not taken for one. */
export class LineSource {
  readonly #flags: LineOptions;
  readonly #parser: LineParser;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #labelsFrom: readonly (readonly [string, string])[];
  readonly #metadataFrom: readonly (readonly [string, string])[];
  /** The time of the last line as it was written, and as it was pushed. */
  #written: bigint | undefined;
  #last = 0n;
  #first: bigint | undefined;
  #end = 0n;
  /** The start of a line that goes on. */
  #partial = "";

  constructor(
    flags: LineOptions,
    labels: Readonly<Record<string, string>>,
    lastNs: string | undefined = undefined,
  ) {
    this.#flags = flags;
    this.#parser = new LineParser(flags.format);
    this.#labels = { ...labels, ...Object.fromEntries(flags.label.map(pairOf)) };
    this.#labelsFrom = flags["label-from"].map(nameAndField);
    this.#metadataFrom = flags["metadata-from"].map(nameAndField);
    if (lastNs === undefined) return;
    const [written = "0", last = "0"] = lastNs.split("+");
    this.#written = BigInt(written);
    this.#last = BigInt(last);
  }

  /** Where the times of lines are, for the next run. */
  get lastNs(): string {
    return `${this.#written ?? 0n}+${this.#last}`;
  }

  /** The times of all rows so far; undefined if there were none. */
  get range(): TimeRange | undefined {
    return this.#first === undefined ? undefined : { fromNs: this.#first, toNs: this.#end };
  }

  /** The row of a line; undefined for a blank one, and for one that goes on. */
  row(text: string): Row | undefined {
    if (text.trim() === "") return undefined;
    const parsed = this.#parser.parse(text, Date.now());
    if (parsed.isPartial === true && this.#partial.length < 1024 * 1024) {
      this.#partial += parsed.line;
      return undefined;
    }
    const line = this.#partial + parsed.line;
    this.#partial = "";
    const named = this.#flags["time-field"];
    const own = named === "" ? undefined : parseLogTime(parsed.field(named) ?? "");
    const found = own ?? parsed.ns;
    const written = found ?? this.#written ?? BigInt(Date.now()) * 1_000_000n;
    const isSame = written === this.#written;
    this.#last = isSame ? this.#last + 1n : written;
    this.#written = written;
    if (this.#first === undefined || this.#last < this.#first) this.#first = this.#last;
    if (this.#last >= this.#end) this.#end = this.#last + 1n;
    return {
      labels: { ...this.#labels, ...pick(this.#labelsFrom, parsed.field) },
      ns: this.#last,
      line,
      metadata: { ...parsed.metadata, ...pick(this.#metadataFrom, parsed.field) },
    };
  }
}

function pairOf(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new Failure("usage", `--label: ${text} is not NAME=VALUE`);
  return [name, value];
}

function nameAndField(text: string): [string, string] {
  const [name = "", field] = text.split("=");
  return [field === undefined ? name.replace(/[^\w]/g, "_") : name, field ?? name];
}

function pick(
  wanted: readonly (readonly [string, string])[],
  field: (name: string) => string | undefined,
) {
  const found: Record<string, string> = {};
  for (const [name, path] of wanted) {
    const value = field(path);
    if (value !== undefined && value !== "") found[name] = value;
  }
  return found;
}
