import { invalidArgument, SkaldError } from "@skald/model";
import {
  factsOf,
  type LabelFilter,
  type LabelTarget,
  type Stage,
  type Unwrap,
} from "../syntax/ast.js";
import { printStage } from "../syntax/stages.js";
import { impliedNeedles, pipelineFormula, valueFormula } from "./needles.js";
import type { Pipeline, PipelineOptions } from "./pipeline.js";
import { encodeText } from "./row/bytes.js";
import type { Demand, PreparedStage } from "./row/row.js";
import { errorDetailsLabel, errorLabel, extractedSuffix, isErrorLabel } from "./row/row-labels.js";
import { BlockRun, type CompiledPipeline, type TailStage } from "./run.js";
import { preparePattern, prepareRegexp } from "./stage/capture.js";
import { prepareDrop, prepareKeep } from "./stage/drop-keep.js";
import { demandsErrors, isWanted, parserGuard } from "./stage/fields.js";
import {
  compileLabelFormats,
  compileLineTemplate,
  prepareDecolorize,
  prepareLabelFormat,
  prepareLineFormat,
} from "./stage/format.js";
import { prepareJson, prepareJsonPaths, prepareUnpack } from "./stage/json.js";
import { compileLabelFilter, prepareUnwrap } from "./stage/label-filter.js";
import type { LabelPrefilter } from "./stage/label-prefilter.js";
import { compileLineFilter, type LineFilter, prepareLineFilter } from "./stage/line-filter.js";
import { prepareLogfmt, prepareLogfmtKeys } from "./stage/logfmt.js";
import { FilterRows } from "./stage/row-sets.js";

/** Compiles stages. Throws invalid_argument for what can only be checked now, such as templates and regexes. */
export function compilePipeline(options: PipelineOptions): Pipeline {
  const compiled = compileStages(options);
  const { metadata, usesLines, usesTimestamps } = compiled;
  const filterRows = new FilterRows(compiled.lineFilters);
  const formula = pipelineFormula(compiled);
  return {
    needs: {
      lines: usesLines,
      timestamps: usesTimestamps,
      metadata: metadata === "all" ? true : [...metadata],
    },
    ...(formula === undefined ? {} : { formula }),
    readsLines: (facts) => compiled.usesLinesBehind || !filterRows.answersAll(facts),
    start: (options) => new BlockRun(compiled, options),
  };
}

/** Throws invalid_argument with the stage in the text for what is wrong with one. */
export function compileStages(options: PipelineOptions): CompiledPipeline {
  const { stages } = options;
  const compiled = stages.map(compileStage);
  const demand = analyseDemand(options, compiled);
  const { behind, metadata } = demand;
  const useful = usefulStages(options, demand, compiled);
  const labelFilters: LabelPrefilter[] = [];
  const lineFilters: LineFilter[] = [];
  const tail: TailStage[] = [];
  let usesLinesBehind = options.output.kind === "log";
  let usesTimestamps = false;
  let changesLines = false;
  let changesLabels = false;
  for (const [i, stage] of stages.entries()) {
    const { prepare, lineFilter, readsLine, usesTimestamp = false } = compiled[i]!;
    if (lineFilter !== undefined && !changesLines) {
      lineFilters.push(lineFilter);
      continue;
    }
    if (stage.kind === "label_filter" && !changesLabels && !seesErrors(stage.filter)) {
      const isPlain = isPlainFilter(stage.filter);
      labelFilters.push(frontFilter(stage.filter, isPlain ? undefined : tail.length));
      if (isPlain) continue;
    }
    if (!useful[i]) continue;
    const guard = parserGuard(stages, i);
    tail.push({ prepare, context: { demand: behind[i]!, guard, isFirst: tail.length === 0 } });
    usesLinesBehind ||= readsLine;
    usesTimestamps ||= usesTimestamp;
    changesLines ||= factsOf(stage).changesLine;
    changesLabels ||= factsOf(stage).changesLabels;
  }
  const implied = impliedNeedles(stages);
  usesLinesBehind ||= implied.length > 0;
  return {
    ...{
      options,
      labelFilters,
      lineFilters,
      tail,
      usesLines: usesLinesBehind || lineFilters.length > 0,
      usesLinesBehind,
      usesTimestamps,
      changesLines,
      metadata,
    },
    implied,
    unwrap: options.unwrap && prepareUnwrap(options.unwrap),
    valueLabel: options.unwrap && valueLabel(options.unwrap),
  };
}

/** A stage that is checked and compiled, and what it uses. */
interface CompiledStage {
  readonly prepare: PreparedStage;
  readonly lineFilter?: LineFilter;
  /** Whether rows need their line for it. */
  readonly readsLine: boolean;
  readonly usesTimestamp?: boolean;
  /** Names of the labels that it looks at; none if not given. */
  readonly asks?: "all" | readonly string[];
  /** What is used before it of labels that are used behind it, as far as it takes some away. */
  readonly leaves?: (demand: Demand) => Demand;
}

/** Compiles a stage, and adds its text to what is wrong with it. */
function compileStage(stage: Stage): CompiledStage {
  try {
    const { readsLine, changesLine } = factsOf(stage);
    const compile = compilers[stage.kind] as (stage: Stage) => StageParts;
    return { readsLine: readsLine || changesLine, ...compile(stage) };
  } catch (error) {
    if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
    throw invalidArgument(`parse error : stage '${printStage(stage)}' : ${error.message}`, {
      cause: error,
    });
  }
}

/** A compiled stage; one without templates need not say whether it reads the line. */
type StageParts = Omit<CompiledStage, "readsLine"> & Partial<CompiledStage>;

const compilers: {
  readonly [Kind in Stage["kind"]]: (stage: Stage & { readonly kind: Kind }) => StageParts;
} = {
  line_filter: (stage) => {
    const lineFilter = compileLineFilter(stage);
    return { prepare: prepareLineFilter(lineFilter), lineFilter };
  },
  label_filter: ({ filter }) => {
    const compile = compileLabelFilter(filter);
    return { prepare: (row) => compile(row), asks: filterNames(filter) };
  },
  json: (stage) => ({
    prepare: stage.extractions.length === 0 ? prepareJson : prepareJsonPaths(stage),
  }),
  logfmt: (stage) => ({
    prepare: stage.extractions.length === 0 ? prepareLogfmt(stage) : prepareLogfmtKeys(stage),
  }),
  regexp: ({ pattern }) => ({ prepare: prepareRegexp(pattern) }),
  pattern: ({ pattern }) => ({ prepare: preparePattern(pattern) }),
  unpack: () => ({ prepare: prepareUnpack }),
  decolorize: () => ({ prepare: prepareDecolorize }),
  line_format: ({ template: source }) => {
    const template = compileLineTemplate(source);
    return {
      prepare: prepareLineFormat(template),
      // A template that fails leaves the line as it is.
      readsLine: template.usesLine || template.canFail,
      usesTimestamp: template.usesTimestamp,
      asks: template.labels,
    };
  },
  label_format: (stage) => {
    const formats = compileLabelFormats(stage.formats);
    const templates = formats.flatMap((f) => (f.kind === "template" ? [f.template] : []));
    const asks = formats.map((f) => (f.kind === "rename" ? [f.source] : f.template.labels));
    return {
      prepare: prepareLabelFormat(formats),
      readsLine: templates.some(({ usesLine }) => usesLine),
      usesTimestamp: templates.some(({ usesTimestamp }) => usesTimestamp),
      asks: asks.includes("all") ? "all" : (asks as string[][]).flat(),
    };
  },
  drop: ({ targets }) => {
    const dropped = new Set(targets.flatMap((t) => (t.kind === "name" ? [t.name] : [])));
    const leaves = (demand: Demand) =>
      demand === "all" ? demand : new Set([...demand].filter((name) => !dropped.has(name)));
    return { prepare: prepareDrop(targets), asks: matcherNames(targets), leaves };
  },
  keep: ({ targets }) => {
    const kept = targets.map((t) => (t.kind === "name" ? t.name : t.matcher.name));
    const left = new Set([...kept, errorLabel, errorDetailsLabel]);
    const leaves = (demand: Demand) =>
      demand === "all" ? left : new Set([...demand].filter((name) => left.has(name)));
    return { prepare: prepareKeep(targets), asks: matcherNames(targets), leaves };
  },
};

function matcherNames(targets: readonly LabelTarget[]): readonly string[] {
  return targets.flatMap((target) => (target.kind === "matcher" ? [target.matcher.name] : []));
}

/** What is used of labels behind each stage, and of the metadata of rows. */
interface PipelineDemand {
  /** Behind stage i. */
  readonly behind: readonly Demand[];
  /** True when a label is used behind stage i, even one that a stage between takes away. */
  readonly isAsked: readonly boolean[];
  /** Labels of metadata that are looked at, and names that a parsed label may clash with. */
  readonly metadata: Demand;
}

/**
 * Walks the stages backwards from the output. A label that a stage takes away is not used before it, unless a later
 * parser could find it again: that parser must know that an earlier one had it.
 */
function analyseDemand(
  { stages, unwrap, output }: PipelineOptions,
  compiled: readonly CompiledStage[],
): PipelineDemand {
  const grouping = output.kind === "log" ? undefined : output.grouping;
  let demand: Demand =
    grouping === undefined || grouping.without ? "all" : new Set(grouping.labels);
  if (unwrap !== undefined) {
    demand = plus(demand, [unwrap.label, ...unwrap.filters.flatMap(filterNames)]);
  }
  const behind: Demand[] = new Array(stages.length);
  const isAsked: boolean[] = new Array(stages.length);
  let isAskedBehind = !isEmpty(demand);
  let metadata: Demand = new Set();
  let parserFollows = false;
  for (let i = stages.length - 1; i >= 0; i--) {
    behind[i] = demand;
    isAsked[i] = isAskedBehind;
    if (factsOf(stages[i]!).parses) {
      metadata = plus(metadata, demand);
      parserFollows = true;
    }
    const { leaves, asks = [] } = compiled[i]!;
    demand = plus(parserFollows ? demand : (leaves?.(demand) ?? demand), asks);
    isAskedBehind ||= asks.length > 0;
  }
  return { behind, isAsked, metadata: withBaseNames(plus(metadata, demand)) };
}

function isEmpty(demand: Demand): boolean {
  return demand !== "all" && demand.size === 0;
}

/** Names that a label filter looks at. */
export function filterNames(filter: LabelFilter): readonly string[] {
  if (filter.kind === "and" || filter.kind === "or") {
    return [...filterNames(filter.left), ...filterNames(filter.right)];
  }
  return [filter.kind === "string" ? filter.matcher.name : filter.name];
}

function plus(demand: Demand, names: "all" | Iterable<string>): Demand {
  return demand === "all" || names === "all" ? "all" : new Set([...demand, ...names]);
}

/** Adds `x` for `x_extracted`, which is `x` of the metadata or the line where the stream has `x`. */
function withBaseNames(demand: Demand): Demand {
  if (demand === "all") return demand;
  // Metadata can set the error state of a row, which filters and formats see, and which fails a metric query.
  const names = new Set([...demand, errorLabel, errorDetailsLabel]);
  for (const name of demand) {
    for (let base = name; base.endsWith(extractedSuffix); ) {
      base = base.slice(0, -extractedSuffix.length);
      names.add(base);
    }
  }
  return names;
}

/**
 * False for each parser that may be left out: nothing uses its labels or its line, and it cannot fail. A parser that
 * can fail is left out, with its errors, when no label at all is used behind it.
 */
function usefulStages(
  { stages, output, countsLines }: PipelineOptions,
  { behind, isAsked }: PipelineDemand,
  compiled: readonly CompiledStage[],
): readonly boolean[] {
  let isLineRead = output.kind === "log" || countsLines === true;
  const useful: boolean[] = new Array(stages.length);
  for (let i = stages.length - 1; i >= 0; i--) {
    const stage = stages[i]!;
    const { parses, changesLine } = factsOf(stage);
    const isUsed = isDemanded(stage, behind[i]!) || (isAsked[i]! && canFail(stage));
    useful[i] = !parses || (changesLine && isLineRead) || isUsed;
    if (useful[i] && compiled[i]!.readsLine) isLineRead = true;
  }
  return useful;
}

/** True when labels that a parser finds are used. */
function isDemanded(stage: Stage, demand: Demand): boolean {
  if (demand === "all") return true;
  if (demand.size === 0) return false;
  const extractions = "extractions" in stage ? stage.extractions : [];
  if (extractions.length === 0 || demandsErrors(demand)) return true;
  return extractions.some(({ label }) => isWanted(demand, label));
}

/** True for a parser that marks malformed lines with an error. */
function canFail(stage: Stage): boolean {
  return stage.kind === "logfmt" ? stage.strict : factsOf(stage).marksErrors;
}

/** The label whose value alone says which number a row has, where filters behind it look at nothing else than errors. */
function valueLabel({ label, filters }: Unwrap): string | undefined {
  const isOwn = (name: string) => name === label || isErrorLabel(name);
  return filters.flatMap(filterNames).every(isOwn) ? label : undefined;
}

function frontFilter(filter: LabelFilter, stage: number | undefined): LabelPrefilter {
  const front = {
    stage,
    prepare: compileLabelFilter(filter),
    names: [...new Set(filterNames(filter))],
    formula: valueFormula(filter),
  };
  const isEquality = filter.kind === "string" && filter.matcher.op === "=";
  if (!isEquality || filter.matcher.value === "") return front;
  return { ...front, equals: encodeText(filter.matcher.value) };
}

/** True for comparisons of texts only: such a filter sets no error. */
function isPlainFilter(filter: LabelFilter): boolean {
  if (filter.kind === "and" || filter.kind === "or") {
    return isPlainFilter(filter.left) && isPlainFilter(filter.right);
  }
  return filter.kind === "string";
}

/** True for a filter whose answer may change with an error that an earlier stage set. Others may be asked before those. */
export function seesErrors(filter: LabelFilter): boolean {
  if (filter.kind === "and" || filter.kind === "or")
    return seesErrors(filter.left) || seesErrors(filter.right);
  return filter.kind === "ip" || filterNames(filter).some(isErrorLabel);
}
