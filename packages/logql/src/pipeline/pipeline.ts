import { compileStages } from "./compile.js";
import { pipelineFormula } from "./formula.js";
import { BlockRun } from "./run.js";
import type { Pipeline, PipelineOptions } from "./types.js";

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
