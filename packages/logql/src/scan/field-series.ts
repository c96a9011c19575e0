import type { RowSelection } from "@skald/kernels";
import type { Block } from "@skald/model";
import { filterNames } from "../pipeline/compile.js";
import { errorDetailsLabel, errorLabel, extractedSuffix } from "../pipeline/row/row-labels.js";
import type { LeafPlan } from "../plan/plan.js";
import type { BlockStreams, StreamLabels } from "./block-selection.js";
import { FieldColumns, isPlainParser, seesErrors } from "./field-columns.js";
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

  get names(): readonly string[] {
    return this.#columns.names;
  }

  /** Whether the lines of a block are surely not read. */
  sparesLines({ facts, streams, labelNames }: BlockStreams): boolean {
    const fields = facts?.fields;
    if (fields === undefined || fields.irregular.count > 0) return false;
    if (!this.#columns.areOf(fields, streams)) return false;
    const isKnown = (name: string) => fields.names.includes(name) || labelNames.includes(name);
    return this.names.every(isKnown) && !this.pipeline.readsLines(facts);
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
  const parser = stages.find(isPlainParser);
  const names = new Set(grouping.labels);
  const before = new Set<string>();
  let isParsed = false;
  for (const stage of stages) {
    if (stage === parser) isParsed = true;
    else if (stage.kind === "label_filter") {
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
  if (parser === undefined || names.size === 0 || [...names].some(isOdd)) return undefined;
  return { parser, names: [...names] };
}
