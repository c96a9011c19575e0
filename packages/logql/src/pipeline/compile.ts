import { invalidArgument, SkaldError, unreachable } from "@skald/model";
import { factsOf, type Grouping, type LabelFilter, type Stage } from "../syntax/ast.js";
import { printStage } from "../syntax/print.js";
import { compileTemplate } from "../template/template.js";
import { impliedNeedles, pipelineFormula, valueFormula } from "./needles.js";
import type { Pipeline, PipelineOptions } from "./pipeline.js";
import { encodeText } from "./row/bytes.js";
import type { Demand, PreparedStage } from "./row/row.js";
import { errorDetailsLabel, errorLabel } from "./row/row-labels.js";
import { BlockRun, type CompiledPipeline, type TailStage } from "./run.js";
import { preparePattern, prepareRegexp } from "./stage/capture.js";
import { compileTargets, prepareDrop, prepareKeep } from "./stage/drop-keep.js";
import { demandsErrors, isWanted, parserGuard } from "./stage/fields.js";
import {
  compileLabelFormats,
  compileLineTemplate,
  prepareDecolorize,
  prepareLabelFormat,
  prepareLineFormat,
} from "./stage/format.js";
import { prepareJson, prepareJsonPaths, prepareUnpack } from "./stage/json.js";
import { compileLabelFilter, type LabelPrefilter, prepareUnwrap } from "./stage/label-filter.js";
import { compileLineFilter, type LineFilter, prepareLineFilter } from "./stage/line-filter.js";
import { prepareLogfmt, prepareLogfmtKeys } from "./stage/logfmt.js";

/** Compiles stages. Throws invalid_argument for what can only be checked now, such as templates and regexes. */
export function compilePipeline(options: PipelineOptions): Pipeline {
  const compiled = compileStages(options);
  const { metadata, usesLines, usesTimestamps } = compiled;
  const formula = pipelineFormula(compiled);
  return {
    needs: {
      lines: usesLines,
      timestamps: usesTimestamps,
      metadata: metadata === "all" ? true : [...metadata],
    },
    ...(formula === undefined ? {} : { formula }),
    start: (options) => new BlockRun(compiled, options),
  };
}

/** Throws invalid_argument with the stage in the text for what is wrong with one. */
export function compileStages(options: PipelineOptions): CompiledPipeline {
  const { stages } = options;
  const prepared = stages.map((stage) => named(stage, () => prepareStage(stage)));
  const { behind, metadata } = analyseDemand(options);
  const useful = usefulStages(options, behind, prepared);
  const labelFilters: LabelPrefilter[] = [];
  const lineFilters: LineFilter[] = [];
  const tail: TailStage[] = [];
  let usesLines = options.output.kind === "log";
  let usesTimestamps = false;
  let changesLines = false;
  let changesLabels = false;
  for (const [i, stage] of stages.entries()) {
    const demand = behind[i]!;
    const { prepare, lineFilter, looksAt } = prepared[i]!;
    if (lineFilter !== undefined) usesLines = true;
    if (lineFilter !== undefined && !changesLines) {
      lineFilters.push(lineFilter);
      continue;
    }
    if (stage.kind === "label_filter" && !changesLabels && isPlainFilter(stage.filter)) {
      labelFilters.push(frontFilter(stage.filter));
      continue;
    }
    if (!useful[i]) continue;
    const isFirst = tail.length === 0;
    tail.push({ prepare, context: { demand, guard: parserGuard(stages, i), isFirst } });
    if (looksAt.line) usesLines = true;
    if (looksAt.timestamp) usesTimestamps = true;
    changesLines ||= factsOf(stage).changesLine;
    changesLabels ||= factsOf(stage).changesLabels;
  }
  const unwrap = options.unwrap && prepareUnwrap(options.unwrap);
  return {
    options,
    labelFilters,
    lineFilters,
    implied: impliedNeedles(stages),
    tail,
    unwrap,
    usesLines,
    usesTimestamps,
    changesLines,
    metadata,
  };
}

interface PreparedPart {
  readonly prepare: PreparedStage;
  readonly lineFilter?: LineFilter;
  readonly looksAt: { readonly line: boolean; readonly timestamp: boolean };
}

const line = { line: true, timestamp: false };
const nothing = { line: false, timestamp: false };

function prepareStage(stage: Stage): PreparedPart {
  switch (stage.kind) {
    case "line_filter": {
      const lineFilter = compileLineFilter(stage);
      return { prepare: prepareLineFilter(lineFilter), lineFilter, looksAt: line };
    }
    case "label_filter": {
      const compile = compileLabelFilter(stage.filter);
      return { prepare: (row) => compile(row), looksAt: nothing };
    }
    case "json": {
      const isPlain = stage.extractions.length === 0;
      return { prepare: isPlain ? prepareJson : prepareJsonPaths(stage), looksAt: line };
    }
    case "logfmt": {
      const isPlain = stage.extractions.length === 0;
      return { prepare: isPlain ? prepareLogfmt(stage) : prepareLogfmtKeys(stage), looksAt: line };
    }
    case "regexp":
      return { prepare: prepareRegexp(stage.pattern), looksAt: line };
    case "pattern":
      return { prepare: preparePattern(stage.pattern), looksAt: line };
    case "unpack":
      return { prepare: prepareUnpack, looksAt: line };
    case "decolorize":
      return { prepare: prepareDecolorize, looksAt: line };
    case "line_format": {
      const template = compileLineTemplate(stage.template);
      return {
        prepare: prepareLineFormat(template),
        looksAt: {
          // a template that fails leaves the line as it is
          line: template.usesLine || template.canFail,
          timestamp: template.usesTimestamp,
        },
      };
    }
    case "label_format": {
      const formats = compileLabelFormats(stage.formats);
      const templates = formats.flatMap((f) => (f.kind === "template" ? [f.template] : []));
      const looksAt = {
        line: templates.some((t) => t.usesLine),
        timestamp: templates.some((t) => t.usesTimestamp),
      };
      return { prepare: prepareLabelFormat(formats), looksAt };
    }
    case "drop":
      return { prepare: prepareDrop(compileTargets(stage.targets)), looksAt: nothing };
    case "keep":
      return { prepare: prepareKeep(compileTargets(stage.targets)), looksAt: nothing };
    default:
      return unreachable(stage);
  }
}

/** Adds the text of the stage to what is wrong with it. */
function named<T>(stage: Stage, prepare: () => T): T {
  try {
    return prepare();
  } catch (error) {
    if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
    throw invalidArgument(`parse error : stage '${printStage(stage)}' : ${error.message}`, {
      cause: error,
    });
  }
}

function frontFilter(filter: LabelFilter): LabelPrefilter {
  const front = {
    prepare: compileLabelFilter(filter),
    names: [...new Set(filterNames(filter))],
    formula: valueFormula(filter),
  };
  const isEquality = filter.kind === "string" && filter.matcher.op === "=";
  if (!isEquality || filter.matcher.value === "") return front;
  return { ...front, equals: encodeText(filter.matcher.value) };
}

/** String comparisons only, and not of errors: such a filter sets nothing and may be asked before others. */
function isPlainFilter(filter: LabelFilter): boolean {
  switch (filter.kind) {
    case "and":
    case "or":
      return isPlainFilter(filter.left) && isPlainFilter(filter.right);
    case "string":
      return filter.matcher.name !== errorLabel && filter.matcher.name !== errorDetailsLabel;
    default:
      return false;
  }
}

/** False for each parser of which nothing is used, neither labels nor the line: it is left out with its errors. */
function usefulStages(
  { stages, output, countsLines }: PipelineOptions,
  behind: readonly Demand[],
  prepared: readonly PreparedPart[],
): readonly boolean[] {
  let isLineRead = output.kind === "log" || countsLines === true;
  const useful: boolean[] = new Array(stages.length);
  for (let i = stages.length - 1; i >= 0; i--) {
    const stage = stages[i]!;
    const { parses, changesLine } = factsOf(stage);
    const isLineUsed = changesLine && isLineRead;
    useful[i] = !parses || isLineUsed || isDemanded(stage, behind[i]!);
    if (useful[i] && prepared[i]!.looksAt.line) isLineRead = true;
  }
  return useful;
}

/** True when labels that a parser finds are used. */
function isDemanded(stage: Stage, demand: Demand): boolean {
  if (demand === "all") return true;
  if (demand.size === 0) return false;
  const extractions = stage.kind === "json" || stage.kind === "logfmt" ? stage.extractions : [];
  if (extractions.length === 0 || demandsErrors(demand)) return true;
  return extractions.some(({ label }) => isWanted(demand, label));
}

/** What is used of the labels at each point of a pipeline. */
interface PipelineDemand {
  /** Behind stage i. */
  readonly behind: readonly Demand[];
  /** Of the metadata of a row: labels that are looked at, and names that a parsed label may clash with. */
  readonly metadata: Demand;
}

/** Walks the stages backwards from the output. The templates must be known to compile. */
function analyseDemand({ stages, unwrap, output }: PipelineOptions): PipelineDemand {
  let demand: Demand = output.kind === "log" ? "all" : groupingDemand(output.grouping);
  if (unwrap !== undefined) {
    demand = plus(demand, [unwrap.label, ...unwrap.filters.flatMap(filterNames)]);
  }
  const behind: Demand[] = new Array(stages.length);
  let metadata: Demand = new Set();
  let parserFollows = false;
  for (let i = stages.length - 1; i >= 0; i--) {
    behind[i] = demand;
    const stage = stages[i]!;
    if (factsOf(stage).parses) {
      metadata = plus(metadata, demand);
      parserFollows = true;
    }
    demand = before(stage, demand, parserFollows);
  }
  return { behind, metadata: withBaseNames(plus(metadata, demand)) };
}

function groupingDemand(grouping: Grouping | undefined): Demand {
  return grouping === undefined || grouping.without ? "all" : new Set(grouping.labels);
}

/**
 * What is used before a stage, given what is used behind it. A label that is taken away is not used before, unless a
 * later parser could find it again: that parser must know that an earlier one had it.
 */
function before(stage: Stage, demand: Demand, parserFollows: boolean): Demand {
  switch (stage.kind) {
    case "label_filter":
      return plus(demand, filterNames(stage.filter));
    case "line_format":
      return plus(demand, templateNames(stage.template, "line"));
    case "label_format": {
      let used = demand;
      for (const format of stage.formats) {
        const isRename = format.kind === "rename";
        used = plus(used, isRename ? [format.source] : templateNames(format.template, "label"));
      }
      return used;
    }
    case "drop":
      return plus(parserFollows ? demand : minus(demand, stage), matcherNames(stage));
    case "keep": {
      if (parserFollows) return plus(demand, matcherNames(stage));
      const kept = stage.targets.map((t) => (t.kind === "name" ? t.name : t.matcher.name));
      const allowed = new Set([...kept, errorLabel, errorDetailsLabel]);
      const left = demand === "all" ? allowed : [...demand].filter((name) => allowed.has(name));
      return plus(new Set(left), matcherNames(stage));
    }
    case "line_filter":
    case "json":
    case "logfmt":
    case "regexp":
    case "pattern":
    case "unpack":
    case "decolorize":
      return demand;
    default:
      return unreachable(stage);
  }
}

function minus(demand: Demand, stage: Stage & { kind: "drop" }): Demand {
  if (demand === "all") return demand;
  const dropped = new Set(stage.targets.flatMap((t) => (t.kind === "name" ? [t.name] : [])));
  return new Set([...demand].filter((name) => !dropped.has(name)));
}

function matcherNames({ targets }: Stage & { kind: "drop" | "keep" }): readonly string[] {
  return targets.flatMap((target) => (target.kind === "matcher" ? [target.matcher.name] : []));
}

/** Names that a label filter looks at. */
function filterNames(filter: LabelFilter): readonly string[] {
  switch (filter.kind) {
    case "and":
    case "or":
      return [...filterNames(filter.left), ...filterNames(filter.right)];
    case "string":
      return [filter.matcher.name];
    case "number":
    case "duration":
    case "bytes":
    case "ip":
      return [filter.name];
    default:
      return unreachable(filter);
  }
}

function templateNames(source: string, name: string): "all" | readonly string[] {
  return compileTemplate(source, name).labels;
}

function plus(demand: Demand, names: "all" | Iterable<string>): Demand {
  return demand === "all" || names === "all" ? "all" : new Set([...demand, ...names]);
}

/** `x_extracted` is `x` of the metadata or the line when the stream has `x`. */
function withBaseNames(demand: Demand): Demand {
  if (demand === "all") return demand;
  if (demand.size === 0) return demand;
  // metadata can set the error state of a row, which filters and formats see
  const names = new Set([...demand, errorLabel, errorDetailsLabel]);
  for (const name of demand) {
    for (let base = name; base.endsWith(suffix); ) {
      base = base.slice(0, -suffix.length);
      names.add(base);
    }
  }
  return names;
}

const suffix = "_extracted";
