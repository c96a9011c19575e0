import type { RowSelection } from "@skald/kernels";
import { type Block, type BytesColumn, fieldFamily, type MetadataColumn } from "@skald/model";
import {
  errorDetailsLabel,
  errorLabel,
  extractedSuffix,
  isErrorLabel,
} from "../pipeline/row/row-labels.js";
import type { LeafPlan } from "../plan/plan.js";
import type { JsonStage, LabelFilter, LogfmtStage } from "../syntax/ast.js";
import type { BlockStreams, StreamLabels } from "./block-selection.js";
import { PipelineSeries, type SeriesIndex } from "./series.js";

/**
 * A leaf whose parser is spared where blocks have the wanted fields as columns: the columns take the place of structured
 * metadata, and the pipeline is that of the leaf without the parser. This is exact because such labels are read in the same way, and
 * because a block is refused in which a wanted name is a label or metadata of some rows: there a parsed value has another name.
 */
export class FieldSeries {
  readonly pipeline: PipelineSeries;
  /** Labels that a regular row may get from its line. */
  readonly names: readonly string[];
  readonly #family: number;

  private constructor(
    pipeline: PipelineSeries,
    wanted: { readonly names: readonly string[]; readonly family: number },
  ) {
    this.pipeline = pipeline;
    this.names = wanted.names;
    this.#family = wanted.family;
  }

  /** Undefined for a leaf that needs its parser in any case. */
  static of(leaf: LeafPlan, index: SeriesIndex, check?: () => void): FieldSeries | undefined {
    const wanted = wantedFields(leaf);
    if (wanted === undefined) return undefined;
    const stages = leaf.stages.filter((stage) => stage !== wanted.parser);
    return new FieldSeries(new PipelineSeries({ ...leaf, stages }, index, check), wanted);
  }

  /** Whether the lines of a block are surely not read. */
  sparesLines({ facts, streams, labelNames }: BlockStreams): boolean {
    const fields = facts?.fields;
    if (fields === undefined || fields.irregular.count > 0) return false;
    for (const stream of streams) if (fields.familyOf(stream) !== this.#family) return false;
    const isKnown = (name: string) => fields.names.includes(name) || labelNames.includes(name);
    return this.names.every(isKnown) && !this.pipeline.readsLines(facts);
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
    if (selected.some((stream) => fields.familyOf(stream) !== this.#family)) return undefined;
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

/** What a leaf wants from lines. */
interface WantedFields {
  readonly parser: JsonStage | LogfmtStage;
  readonly family: number;
  readonly names: readonly string[];
}

function wantedFields({ stages, unwrap, grouping, extract, mode }: LeafPlan) {
  if (grouping === undefined || grouping.without || extract !== "needed" || mode === "bytes")
    return undefined;
  const names = new Set(grouping.labels);
  let parser: WantedFields["parser"] | undefined;
  const before = new Set<string>();
  for (const stage of stages) {
    if (stage.kind === "line_filter") continue;
    if (stage.kind === "label_filter") {
      if (seesErrors(stage.filter)) return undefined;
      for (const name of namesOf(stage.filter)) (parser === undefined ? before : names).add(name);
    } else if (parser === undefined && isPlainParser(stage)) parser = stage;
    else return undefined;
  }
  if (unwrap !== undefined) {
    names.add(unwrap.label);
    for (const filter of unwrap.filters) for (const name of namesOf(filter)) names.add(name);
  }
  for (const name of [errorLabel, errorDetailsLabel]) names.delete(name);
  const isOdd = (name: string) => before.has(name) || name.endsWith(extractedSuffix);
  if (parser === undefined || names.size === 0 || [...names].some(isOdd)) return undefined;
  return { parser, family: fieldFamily[parser.kind], names: [...names] };
}

function isPlainParser(stage: LeafPlan["stages"][number]): stage is JsonStage | LogfmtStage {
  if (stage.kind === "json") return stage.extractions.length === 0;
  if (stage.kind !== "logfmt") return false;
  return stage.extractions.length === 0 && !stage.strict && !stage.keepEmpty;
}

/** Parsers ask later filters at once, so that a filter may see an error of one behind it: only these do. */
function seesErrors(filter: LabelFilter): boolean {
  if (filter.kind === "and" || filter.kind === "or")
    return seesErrors(filter.left) || seesErrors(filter.right);
  return filter.kind === "ip" || namesOf(filter).some(isErrorLabel);
}

function namesOf(filter: LabelFilter): readonly string[] {
  if (filter.kind === "and" || filter.kind === "or") {
    return [...namesOf(filter.left), ...namesOf(filter.right)];
  }
  return [filter.kind === "string" ? filter.matcher.name : filter.name];
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
