import { unreachable } from "@skald/model";
import type { Grouping, LabelFilter, Stage } from "../syntax/ast.js";
import { factsOf } from "../syntax/stage-facts.js";
import { compileTemplate } from "../template/template.js";
import { errorDetailsLabel, errorLabel } from "./row/labels.js";
import type { Demand } from "./stage/row-state.js";
import type { PipelineOptions } from "./types.js";

/** What is used of the labels at each point of a pipeline. */
export interface PipelineDemand {
  /** Behind stage i. */
  readonly behind: readonly Demand[];
  /** Of the metadata of a row: labels that are looked at, and names that a parsed label may clash with. */
  readonly metadata: Demand;
}

/** Walks the stages backwards from the output. The templates must be known to compile. */
export function analyseDemand({ stages, unwrap, output }: PipelineOptions): PipelineDemand {
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
export function filterNames(filter: LabelFilter): readonly string[] {
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
