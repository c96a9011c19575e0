import type { RowSelection } from "@skald/kernels";
import type { Block, BlockFacts } from "@skald/model";
import { compilePipeline, filterNames } from "../pipeline/compile.js";
import type { PipelineRun } from "../pipeline/pipeline.js";
import { extractedSuffix } from "../pipeline/row/row-labels.js";
import { factsOf, type LabelFilterStage, type Stage } from "../syntax/ast.js";
import type { BlockStreams, StreamLabels } from "./block-selection.js";
import { FieldColumns, isPlainParser, seesErrors } from "./field-columns.js";

/**
 * Rules out rows of a log query by columns of fields: the label filters behind its parser that need no line. A row that one of these
 * refuses has no place in the answer, whatever the other stages do; what is left goes through all stages.
 */
export class FieldFilter {
  readonly #parser: FieldParser;
  readonly #filters: readonly LabelFilterStage[];
  readonly #check: (() => void) | undefined;
  /** What can be asked of blocks with columns of some names, the last that were met. */
  #known:
    | { readonly names: readonly string[]; readonly asked: AskedColumns | undefined }
    | undefined;

  private constructor(
    parser: FieldParser,
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
    if (parser === undefined || !isPlainParser(parser)) return undefined;
    const before = new Set(
      stages.slice(0, at).flatMap((stage) => (isFilter(stage) ? filterNames(stage.filter) : [])),
    );
    const isOdd = (name: string) => before.has(name) || name.endsWith(extractedSuffix);
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
    return asked.columns.names;
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
      filterNames(filter).every((name) => names.includes(name)),
    );
    if (stages.length === 0) return undefined;
    const wanted = new Set(stages.flatMap(({ filter }) => filterNames(filter)));
    // Without labels in its output every row is of one series.
    const output = { kind: "metric", grouping: { without: false, labels: [] } } as const;
    const run = compilePipeline({ stages, output }).start({ check: this.#check });
    return { run, columns: new FieldColumns(this.#parser, [...wanted]) };
  }
}

type FieldParser = ConstructorParameters<typeof FieldColumns>[0];

interface AskedColumns {
  readonly columns: FieldColumns;
  readonly run: PipelineRun;
}

function isFilter(stage: Stage): stage is LabelFilterStage {
  return stage.kind === "label_filter";
}
