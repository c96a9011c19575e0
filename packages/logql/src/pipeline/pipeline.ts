import { compileStages } from "./compile.js";
import { BlockRun } from "./run.js";
import type { LineFilter } from "./stage/line-filter.js";
import type { NeedleClause, Pipeline, PipelineOptions } from "./types.js";

/** Compiles stages. Throws invalid_argument for what can only be checked now, such as templates and regexes. */
export function compilePipeline(options: PipelineOptions): Pipeline {
  const compiled = compileStages(options);
  const { metadata, usesLines, usesTimestamps } = compiled;
  return {
    needs: {
      lines: usesLines,
      timestamps: usesTimestamps,
      metadata: metadata === "all" ? true : [...metadata],
    },
    needles: needlesOf(compiled.lineFilters),
    start: (options) => new BlockRun(compiled, options),
  };
}

function needlesOf(filters: readonly LineFilter[]): readonly NeedleClause[] {
  return filters.flatMap(({ negated, needles }) => {
    if (negated || needles === undefined || needles.ignoreCase) return [];
    return [{ anyOf: needles.values }];
  });
}
