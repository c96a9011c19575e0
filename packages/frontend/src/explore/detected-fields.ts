import {
  compilePipeline,
  groupLogRows,
  joinLines,
  type LogResult,
  lineAt,
  type Pipeline,
  type RowLabels,
  sanitizeLabelName,
} from "@skald/logql";
import { type Block, type Labels, parseGoDuration } from "@skald/model";

/** A field of log lines, as found in a sample of them. */
export interface DetectedField {
  readonly label: string;
  readonly type: FieldType;
  /** Distinct values, each once. */
  readonly values: ReadonlySet<string>;
  /** How it is read from a line, sorted; none for structured metadata. */
  readonly parsers: readonly ParserName[];
  /** Keys from the outermost object to the value; undefined when no JSON has it. */
  readonly jsonPath: readonly string[] | undefined;
}

type ParserName = "json" | "logfmt";

const errorNames = new Set(["__error__", "__error_details__"]);

/**
 * The fields of the rows of an answer, at most `limit`: structured metadata, what the stages of the query parsed, and
 * what `json`, or else `logfmt`, finds in the lines.
 */
export function detectFields(result: LogResult, limit: number): DetectedField[] {
  const fields = new Map<string, FieldFacts>();
  const parsers = parseRows(result);
  const add = (label: string, value: string): FieldFacts | undefined => {
    let field = fields.get(label);
    if (field === undefined) {
      if (fields.size >= limit) return undefined;
      field = new FieldFacts(label);
      fields.set(label, field);
    }
    field.add(value);
    return field;
  };
  const groups = groupLogRows(result, "all");
  for (const { rows } of groups) {
    for (const row of rows) {
      const { categories } = result.labels[result.labelSet[row]!] as RowLabels;
      for (const [label, value] of pairsOf(categories.structuredMetadata)) add(label, value);
      const found = parsers(row);
      const parsed = new Map([...(found?.pairs ?? []), ...pairsOf(categories.parsed)]);
      for (const [label, value] of parsed) {
        if (errorNames.has(label)) continue;
        const field = add(label, value);
        if (found !== undefined) field?.see(found.parser, found.text, categories.stream);
      }
    }
  }
  return [...fields.values()];
}

/** What is known of a field so far. */
class FieldFacts implements DetectedField {
  readonly label: string;
  readonly values = new Set<string>();
  /** By value. */
  readonly #typeOf = new Map<string, FieldType>();
  /** Rows by the type of their value. */
  readonly #rows = new Map<FieldType, number>();
  readonly parsers: ParserName[] = [];
  jsonPath: readonly string[] | undefined;

  constructor(label: string) {
    this.label = label;
  }

  /** The type that the values of most rows have; integers among other numbers are numbers like them. */
  get type(): FieldType {
    const [first = "string", ...others] = this.#rows.keys();
    const rowsOf = (type: FieldType) => this.#rows.get(type) ?? 0;
    const most = others.reduce((best, type) => (rowsOf(type) > rowsOf(best) ? type : best), first);
    return most === "int" && rowsOf("float") > 0 ? "float" : most;
  }

  add(value: string): void {
    this.values.add(value);
    const type = this.#typeOf.get(value) ?? fieldTypeOf(value);
    this.#typeOf.set(value, type);
    this.#rows.set(type, (this.#rows.get(type) ?? 0) + 1);
  }

  see(parser: ParserName, text: () => string, stream: Labels): void {
    if (!this.parsers.includes(parser)) this.parsers.push(parser);
    this.parsers.sort();
    if (parser === "json") this.jsonPath ??= jsonPathOf(text(), this.label, stream);
  }
}

/** What a parser found in a line. */
interface ParsedLine {
  readonly parser: ParserName;
  readonly pairs: readonly (readonly [string, string])[];
  readonly text: () => string;
}

/** Reads each line as JSON, and those that are none as logfmt; undefined where neither can. */
function parseRows(result: LogResult): (row: number) => ParsedLine | undefined {
  const json = compilePipeline({
    stages: [{ kind: "json", extractions: [] }],
    output: { kind: "log" },
  });
  const logfmt = compilePipeline({
    stages: [{ kind: "logfmt", extractions: [], strict: false, keepEmpty: false }],
    output: { kind: "log" },
  });
  const decoder = new TextDecoder();
  const text = (row: number) => () => decoder.decode(lineAt(result.lines, row).slice());
  const asJson = runOver(json, result, (_row) => true);
  const asLogfmt = runOver(logfmt, result, (row) => asJson[row] === undefined);
  return (row) => {
    const pairs = asJson[row] ?? asLogfmt[row];
    if (pairs === undefined) return undefined;
    return { parser: asJson[row] === undefined ? "logfmt" : "json", pairs, text: text(row) };
  };
}

type Pairs = readonly (readonly [string, string])[];

/** By row, what the only stage of a pipeline parsed; undefined for rows that it cannot parse, or was not asked for. */
function runOver(
  pipeline: Pipeline,
  result: LogResult,
  isWanted: (row: number) => boolean,
): (Pairs | undefined)[] {
  const { rowCount, labels } = result;
  const rows = Uint32Array.from({ length: rowCount }, (_, row) => row).filter(isWanted);
  const block = blockOf(result);
  const run = pipeline.start();
  const streamLabels = (set: number) => labels[set]!.categories.stream;
  const found = new Array<Pairs | undefined>(rowCount).fill(undefined);
  const batch = run.process(block, streamLabels, { rows, count: rows.length });
  for (let i = 0; i < batch.count; i++) {
    const parsed = run.series.get(batch.series[i]!).categories?.parsed;
    if (parsed === undefined || parsed.names.includes("__error__")) continue;
    found[batch.rows[i]!] = pairsOf(parsed);
  }
  return found;
}

/** The lines of an answer as a block of one run a row, whose stream is the row's label set. */
function blockOf({ rowCount, lines, labelSet }: LogResult): Block {
  const column = joinLines(lines);
  const zeros = new Float64Array(rowCount);
  return {
    baseNs: 0n,
    rowCount,
    runs: {
      count: rowCount,
      stream: labelSet,
      rowStart: Uint32Array.from({ length: rowCount + 1 }, (_, row) => row),
      minTime: zeros,
      maxTime: zeros,
      lineBytes: zeros,
    },
    timestamps: () => zeros,
    lines: () => column,
    metadataNames: () => [],
    metadata: () => undefined,
  };
}

function pairsOf({ names, values }: Labels): Pairs {
  return names.map((name, i) => [name, values[i] as string]);
}

/** Deeper objects are not looked at. */
const depthMax = 128;

/** The keys that lead to the field of a label; undefined when the line has none. */
function jsonPathOf(line: string, label: string, stream: Labels): string[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const suffix = "_extracted";
  const path = findPath(value, label, "", 0);
  if (path !== undefined || !label.endsWith(suffix)) return path;
  const own = label.slice(0, -suffix.length);
  return stream.names.includes(own) ? findPath(value, own, "", 0) : undefined;
}

function findPath(
  value: unknown,
  label: string,
  prefix: string,
  depth: number,
): string[] | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  if (depth >= depthMax) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const name = prefix + sanitizeLabelName(key, prefix !== "");
    if (name === label && (typeof inner !== "object" || inner === null)) return [key];
    const rest = label.startsWith(name) ? findPath(inner, label, `${name}_`, depth + 1) : undefined;
    if (rest !== undefined) return [key, ...rest];
  }
  return undefined;
}

/** What the values of a field are, judged by one of them. */
export type FieldType = "int" | "float" | "boolean" | "duration" | "bytes" | "string";

const maxInt64 = 2n ** 63n;

/** The first type, in the order of the list, that a text can be read as. */
export function fieldTypeOf(text: string): FieldType {
  if (isInt(text)) return "int";
  if (floatText.test(text)) return "float";
  if (booleans.has(text)) return "boolean";
  if (parseGoDuration(text) !== undefined) return "duration";
  if (isBytes(text)) return "bytes";
  return "string";
}

const floatText =
  /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)p[+-]?\d+|inf|infinity|nan)$/i;
/** A number has no more digits than this. */
const digitsMax = 64;
const booleans = new Set(
  ["1", "t", "T", "TRUE", "true", "True"].concat(["0", "f", "F", "FALSE", "false", "False"]),
);

function isInt(text: string): boolean {
  if (!/^[+-]?\d+$/.test(text) || text.length > digitsMax) return false;
  const value = BigInt(text);
  return value >= -maxInt64 && value < maxInt64;
}

/** A number, with thousands apart or not, and a unit of bytes. */
function isBytes(text: string): boolean {
  return /^[\d,]*\.?[\d,]*\s*(?:b|[kmgtpe]i?b?|)$/i.test(text) && /^[\d.,]*\d/.test(text);
}
