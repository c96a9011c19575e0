import type { RowSelection } from "@skald/kernels";
import {
  type Block,
  type BlockFacts,
  type FieldFacts,
  fieldFamily,
  type MetadataColumn,
} from "@skald/model";
import { compilePipeline, filterNames, seesErrors } from "../pipeline/compile.js";
import type { PipelineRun } from "../pipeline/pipeline.js";
import { errorDetailsLabel, errorLabel, extractedSuffix } from "../pipeline/row/row-labels.js";
import type { LeafPlan } from "../plan/plan.js";
import {
  type Extraction,
  factsOf,
  type JsonStage,
  type LabelFilterStage,
  type LogfmtStage,
  type Stage,
} from "../syntax/ast.js";
import type { BlockStreams, StreamLabels } from "./block-selection.js";
import { PipelineSeries, type SeriesIndex } from "./series.js";

/** A leaf whose parser is spared where blocks have the wanted fields as columns: its pipeline without the parser. */
export class FieldSeries {
  readonly pipeline: PipelineSeries;
  readonly #columns: FieldColumns;

  private constructor(pipeline: PipelineSeries, columns: FieldColumns) {
    this.pipeline = pipeline;
    this.#columns = columns;
  }

  /** Undefined for a leaf that needs its parser in any case. */
  static of(leaf: LeafPlan, index: SeriesIndex, check?: () => void): FieldSeries | undefined {
    const wanted = wantedFields(leaf);
    if (wanted === undefined) return undefined;
    const stages = leaf.stages.filter((stage) => stage !== wanted.parser);
    const columns = new FieldColumns(wanted.parser, wanted.names);
    return new FieldSeries(new PipelineSeries({ ...leaf, stages }, index, check), columns);
  }

  /** Names of the columns that it takes where there are any. */
  get names(): readonly string[] {
    return this.#columns.columnNames;
  }

  /** Whether the lines of a block are surely not read. */
  sparesLines({ facts, streams, labelNames }: BlockStreams): boolean {
    const fields = facts?.fields;
    if (fields === undefined || fields.irregular.count > 0) return false;
    if (!this.#columns.areOf(fields, streams)) return false;
    const { names, columnNames } = this.#columns;
    const isKnown = (name: string, i: number) =>
      fields.names.includes(columnNames[i]!) || labelNames.includes(name);
    return names.every(isKnown) && !this.pipeline.readsLines(facts);
  }

  /** See `FieldColumns.view`. */
  view(block: Block, streams: StreamLabels, selection: Readonly<RowSelection>): Block | undefined {
    return this.#columns.view(block, streams, selection);
  }
}

/** The parser of a leaf, and what the leaf wants from lines; undefined when columns cannot answer it. */
function wantedFields({ stages, unwrap, grouping, extract, mode }: LeafPlan) {
  if (grouping === undefined || grouping.without || extract !== "needed" || mode === "bytes")
    return undefined;
  const parser = stages.find(isColumnParser);
  const names = new Set(grouping.labels);
  const before = new Set<string>();
  let isParsed = false;
  for (const stage of stages) {
    if (stage === parser) isParsed = true;
    else if (stage.kind === "label_filter") {
      // Parsers ask later filters at once, so that a filter may see an error of one behind it.
      if (seesErrors(stage.filter)) return undefined;
      for (const name of filterNames(stage.filter)) (isParsed ? names : before).add(name);
    } else if (stage.kind !== "line_filter") return undefined;
  }
  if (unwrap !== undefined) {
    names.add(unwrap.label);
    for (const filter of unwrap.filters) for (const name of filterNames(filter)) names.add(name);
  }
  for (const name of [errorLabel, errorDetailsLabel]) names.delete(name);
  const isOdd = (name: string) => before.has(name) || name.endsWith(extractedSuffix);
  if (parser === undefined || [...names].some(isOdd)) return undefined;
  const found = [...names].filter((name) => keyOf(parser, name) !== undefined);
  return found.length === 0 ? undefined : { parser, names: found };
}

/**
 * Rules out rows of a log query by columns of fields: the label filters behind its parser that need no line. A row that one of these
 * refuses has no place in the answer, whatever the other stages do; what is left goes through all stages.
 */
export class FieldFilter {
  readonly #parser: ColumnParser;
  readonly #filters: readonly LabelFilterStage[];
  readonly #check: (() => void) | undefined;
  /** What can be asked of blocks with columns of some names, the last that were met. */
  #known:
    | { readonly names: readonly string[]; readonly asked: AskedColumns | undefined }
    | undefined;

  private constructor(
    parser: ColumnParser,
    filters: readonly LabelFilterStage[],
    check?: () => void,
  ) {
    this.#parser = parser;
    this.#filters = filters;
    this.#check = check;
  }

  /** Undefined for stages without such a filter. */
  static of(stages: readonly Stage[], check?: () => void): FieldFilter | undefined {
    const at = stages.findIndex((stage) => stage.kind !== "line_filter" && !isFilter(stage));
    const parser = stages[at];
    if (parser === undefined || !isColumnParser(parser)) return undefined;
    const before = new Set(
      stages.slice(0, at).flatMap((stage) => (isFilter(stage) ? filterNames(stage.filter) : [])),
    );
    const isOdd = (name: string) =>
      before.has(name) || name.endsWith(extractedSuffix) || keyOf(parser, name) === undefined;
    const behind = stages.slice(at + 1);
    const end = behind.findIndex((stage) => !factsOf(stage).filters);
    const filters = (end < 0 ? behind : behind.slice(0, end))
      .filter(isFilter)
      .filter(({ filter }) => !seesErrors(filter) && !filterNames(filter).some(isOdd));
    return filters.length === 0 ? undefined : new FieldFilter(parser, filters, check);
  }

  /** The columns that `passing` reads of a block; undefined when it can tell nothing of the block. */
  columnsFor({
    facts,
    streams,
  }: Pick<BlockStreams, "facts" | "streams">): readonly string[] | undefined {
    const asked = this.#askedOf(facts);
    if (asked === undefined || !asked.columns.areOf(facts!.fields!, streams)) return undefined;
    return asked.columns.columnNames;
  }

  /** Which of the selected rows may pass, as words of bits (see `RowSet`); undefined when that may be any of them. */
  passing(
    block: Block,
    streams: StreamLabels,
    selection: Readonly<RowSelection>,
  ): Uint32Array | undefined {
    const asked = this.#askedOf(block.facts);
    const view = asked?.columns.view(block, streams, selection);
    if (asked === undefined || view === undefined) return undefined;
    const { rows, count } = asked.run.process(view, streams, selection);
    const words = block.facts!.fields!.irregular.words.slice();
    for (let i = 0; i < count; i++) words[rows[i]! >> 5]! |= 1 << (rows[i]! & 31);
    return words;
  }

  #askedOf(facts: BlockFacts | undefined): AskedColumns | undefined {
    const names = facts?.fields?.names;
    if (names === undefined) return undefined;
    if (this.#known?.names !== names) this.#known = { names, asked: this.#ask(names) };
    return this.#known.asked;
  }

  #ask(names: readonly string[]): AskedColumns | undefined {
    const stages = this.#filters.filter(({ filter }) =>
      filterNames(filter).every((name) => names.includes(keyOf(this.#parser, name) ?? "")),
    );
    if (stages.length === 0) return undefined;
    const wanted = new Set(stages.flatMap(({ filter }) => filterNames(filter)));
    // Without labels in its output every row is of one series.
    const output = { kind: "metric", grouping: { without: false, labels: [] } } as const;
    const run = compilePipeline({ stages, output }).start({ check: this.#check });
    return { run, columns: new FieldColumns(this.#parser, [...wanted]) };
  }
}

interface AskedColumns {
  readonly columns: FieldColumns;
  readonly run: PipelineRun;
}

function isFilter(stage: Stage): stage is LabelFilterStage {
  return stage.kind === "label_filter";
}

/**
 * Fields of a parser as columns in place of structured metadata, for a pipeline without the parser. This is exact because labels of both
 * origins are read in the same way, and because a block is refused in which a wanted name is a label or metadata of some
 * rows: there a parsed value has another name.
 */
class FieldColumns {
  /** Labels that a regular row may get from its line. */
  readonly names: readonly string[];
  /** The name of the column of each. */
  readonly columnNames: readonly string[];
  readonly #family: number;
  /** The parser finds the values of keys. */
  readonly #isKeyed: boolean;

  constructor(parser: ColumnParser, names: readonly string[]) {
    this.names = names;
    this.columnNames = names.map((name) => keyOf(parser, name) as string);
    this.#family = fieldFamily[parser.kind];
    this.#isKeyed = parser.extractions.length > 0;
  }

  /** Whether the columns say what the parser finds in the lines of all these streams. */
  areOf(fields: FieldFacts, streams: Iterable<number>): boolean {
    const isOther = (name: string) => fields.names.includes(name) && !fields.isKeyed(name);
    if (this.#isKeyed && this.columnNames.some(isOther)) return false;
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
    for (const [i, name] of this.names.entries()) {
      const columnName = this.columnNames[i]!;
      const having = selected.filter((stream) => streams(stream).names.includes(name)).length;
      // The value in the line gets another name, which nobody asks for.
      if (having === selected.length) continue;
      if (having > 0 || !fields.names.includes(columnName)) return undefined;
      const column = block.field(columnName);
      if (column !== undefined) columns.set(name, column);
    }
    return {
      ...block,
      metadataNames: () => [...own, ...columns.keys()],
      metadata: (name) => columns.get(name) ?? block.metadata(name),
    };
  }
}

/** A parser whose results columns hold: one without arguments, or with keys. */
type ColumnParser = JsonStage | LogfmtStage;

function isColumnParser(stage: Stage): stage is ColumnParser {
  if (stage.kind !== "json" && stage.kind !== "logfmt") return false;
  if (stage.kind === "logfmt" && (stage.strict || stage.keepEmpty)) return false;
  const labels = new Set(stage.extractions.map(({ label }) => label));
  // In logfmt a key that is spelled like the label sets it, too.
  const isKey = ({ label, path }: Extraction) =>
    path === label || (stage.kind === "json" && bareKey.test(path));
  return labels.size === stage.extractions.length && stage.extractions.every(isKey);
}

const bareKey = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The name of the column that has what a parser finds for a label; undefined where it does not look for the label. */
function keyOf({ extractions }: ColumnParser, label: string): string | undefined {
  if (extractions.length === 0) return label;
  return extractions.find((one) => one.label === label)?.path;
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
