import { unreachable } from "@skald/model";
import type { LabelFormat, RangeOp, Stage } from "../syntax/ast.js";

/**
 * The stages of a range aggregation without the line_formats whose line nothing reads: the aggregation counts no bytes,
 * and no filter, parser or template stands behind them. What they would fail on is not the query's business either.
 */
export function withoutUnreadLines(stages: readonly Stage[], op: RangeOp): readonly Stage[] {
  const kept: Stage[] = [];
  let isRead = op === "bytes_over_time" || op === "bytes_rate";
  for (const stage of stages.toReversed()) {
    if (stage.kind === "line_format") {
      if (!isRead) continue;
      isRead = readsLine(stage.template);
    } else {
      isRead ||= looksAtLine(stage);
    }
    kept.push(stage);
  }
  return kept.reverse();
}

/** Whether a stage other than line_format looks at the line, or makes another one of it. */
function looksAtLine(stage: Stage): boolean {
  switch (stage.kind) {
    case "line_filter":
    case "json":
    case "logfmt":
    case "regexp":
    case "pattern":
    case "unpack":
      return true;
    case "label_format":
      return stage.formats.some((format: LabelFormat) => {
        return format.kind === "template" && readsLine(format.template);
      });
    case "label_filter":
    case "decolorize":
    case "line_format":
    case "drop":
    case "keep":
      return false;
    default:
      return unreachable(stage);
  }
}

function readsLine(template: string): boolean {
  return template.includes("__line__");
}
