import type { RowSelection } from "@skald/kernels";
import {
  type Block,
  type BytesColumn,
  type FieldFacts,
  fieldFamily,
  type MetadataColumn,
} from "@skald/model";
import { filterNames } from "../pipeline/compile.js";
import { errorDetailsLabel, errorLabel, isErrorLabel } from "../pipeline/row/row-labels.js";
import type { JsonStage, LabelFilter, LogfmtStage, Stage } from "../syntax/ast.js";
import type { StreamLabels } from "./block-selection.js";

/**
 * Fields of a parser as columns in place of structured metadata, for a pipeline without the parser. This is exact because labels of both
 * origins are read in the same way, and because a block is refused in which a wanted name is a label or metadata of some
 * rows: there a parsed value has another name.
 */
export class FieldColumns {
  /** Labels that a regular row may get from its line. */
  readonly names: readonly string[];
  readonly #family: number;

  constructor(parser: PlainParser, names: readonly string[]) {
    this.names = names;
    this.#family = fieldFamily[parser.kind];
  }

  /** Whether the columns say what the parser finds in the lines of all these streams. */
  areOf(fields: FieldFacts, streams: Iterable<number>): boolean {
    for (const stream of streams) if (fields.familyOf(stream) !== this.#family) return false;
    return true;
  }

  /**
   * The block with the wanted fields as metadata, for the selected rows of it that are regular; undefined when its lines
   * must be parsed.
   */
  view(block: Block, streams: StreamLabels, selection: Readonly<RowSelection>): Block | undefined {
    const fields = block.facts?.fields;
    if (fields === undefined || block.field === undefined) return undefined;
    const own = block.metadataNames();
    const isTaken = (name: string) => own.includes(name);
    if ([...this.names, errorLabel, errorDetailsLabel].some(isTaken)) return undefined;
    const selected = selectedStreams(block, selection);
    if (!this.areOf(fields, selected)) return undefined;
    const columns = new Map<string, MetadataColumn>();
    for (const name of this.names) {
      const having = selected.filter((stream) => streams(stream).names.includes(name)).length;
      // The value in the line gets another name, which nobody asks for.
      if (having === selected.length) continue;
      if (having > 0 || !fields.names.includes(name)) return undefined;
      const column = block.field(name);
      if (column !== undefined) columns.set(name, asDictionary(column, block.rowCount));
    }
    return {
      ...block,
      metadataNames: () => [...own, ...columns.keys()],
      metadata: (name) => columns.get(name) ?? block.metadata(name),
    };
  }
}

/** A parser whose results columns hold. */
type PlainParser = JsonStage | LogfmtStage;

export function isPlainParser(stage: Stage): stage is PlainParser {
  if (stage.kind === "json") return stage.extractions.length === 0;
  if (stage.kind !== "logfmt") return false;
  return stage.extractions.length === 0 && !stage.strict && !stage.keepEmpty;
}

/** Parsers ask later filters at once, so that a filter may see an error of one behind it: only these do. */
export function seesErrors(filter: LabelFilter): boolean {
  if (filter.kind === "and" || filter.kind === "or")
    return seesErrors(filter.left) || seesErrors(filter.right);
  return filter.kind === "ip" || filterNames(filter).some(isErrorLabel);
}

/** The streams of the selected rows. */
function selectedStreams({ runs }: Block, { rows, count }: Readonly<RowSelection>): number[] {
  const streams: number[] = [];
  let at = 0;
  for (let run = 0; run < runs.count && at < count; run++) {
    const end = runs.rowStart[run + 1]!;
    if (rows[at]! >= end) continue;
    streams.push(runs.stream[run]!);
    while (at < count && rows[at]! < end) at++;
  }
  return streams;
}

/** Values of a column that a dictionary takes, with the empty one. */
const maxValues = 256;
const slots = 1024;
const decoder = new TextDecoder();

/** The column as a dictionary, so that each value is looked at once; as it is when it has many values. */
function asDictionary(column: MetadataColumn, rowCount: number): MetadataColumn {
  if (column.kind === "dictionary") return column;
  const { bytes, offsets } = column;
  const codes = new Uint8Array(rowCount);
  const starts: number[] = [0];
  const ends: number[] = [0];
  const table = new Uint16Array(slots);
  let last = 0;
  for (let row = 0; row < rowCount; row++) {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    if (start === end) continue;
    if (isEqual(column, start, end, starts[last]!, ends[last]!)) {
      codes[row] = last;
      continue;
    }
    let hash = end - start;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    let slot = (hash ^ (hash >>> 15)) & (slots - 1);
    let code = table[slot]!;
    while (code > 0 && !isEqual(column, start, end, starts[code]!, ends[code]!)) {
      slot = (slot + 1) & (slots - 1);
      code = table[slot]!;
    }
    if (code === 0) {
      if (starts.length === maxValues) return column;
      code = starts.push(start) - 1;
      ends.push(end);
      table[slot] = code;
    }
    codes[row] = code;
    last = code;
  }
  const dictionary = starts.map((start, code) => decoder.decode(bytes.subarray(start, ends[code])));
  return { kind: "dictionary", dictionary, codes };
}

function isEqual(
  { bytes }: BytesColumn,
  start: number,
  end: number,
  otherStart: number,
  otherEnd: number,
): boolean {
  if (end - start !== otherEnd - otherStart) return false;
  for (let at = start, other = otherStart; at < end; at++, other++)
    if (bytes[at] !== bytes[other]) return false;
  return true;
}
