import { invalidArgument, SkaldError, unreachable } from "@skald/model";
import type { LabelFilter, Stage } from "../syntax/ast.js";
import { printStage } from "../syntax/print-stage.js";
import { factsOf } from "../syntax/stage-facts.js";
import type { CompiledPipeline, LabelPrefilter, TailStage } from "./compiled.js";
import { valueFormula } from "./formula.js";
import { impliedNeedles } from "./implied-needles.js";
import { analyseDemand, filterNames } from "./projection.js";
import { encodeText } from "./row/bytes.js";
import { errorDetailsLabel, errorLabel } from "./row/labels.js";
import { preparePattern } from "./stage/capture/pattern.js";
import { prepareRegexp } from "./stage/capture/regexp.js";
import { prepareDecolorize } from "./stage/decolorize.js";
import { compileTargets, prepareDrop, prepareKeep } from "./stage/drop-keep.js";
import { isWanted, parserGuard } from "./stage/fields/field-sink.js";
import { demandsErrors } from "./stage/fields/key-tree.js";
import { prepareJson } from "./stage/json/json.js";
import { prepareJsonPaths } from "./stage/json/paths.js";
import { prepareUnpack } from "./stage/json/unpack.js";
import { compileLabelFilter } from "./stage/label-filter.js";
import { compileLabelFormats, prepareLabelFormat } from "./stage/label-format.js";
import { compileLineFilter, type LineFilter, prepareLineFilter } from "./stage/line-filter.js";
import { compileLineTemplate, prepareLineFormat } from "./stage/line-format.js";
import { prepareLogfmt } from "./stage/logfmt/logfmt.js";
import { prepareLogfmtKeys } from "./stage/logfmt/logfmt-keys.js";
import type { Demand, PreparedStage } from "./stage/row-state.js";
import { prepareUnwrap } from "./stage/unwrap.js";
import type { PipelineOptions } from "./types.js";

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
