import type { LabelFilter, Stage } from "../../syntax/ast.js";

/** The filters that a parser asks as soon as it has found a value: by label name, the first later one. */
export type ParserGuard = ReadonlyMap<string, LabelFilter>;

/**
 * `json` and `logfmt` drop a row at once when a value they find fails a later filter on that label alone. Clients can
 * see it: the filter is asked before a label_format between the two changes the value.
 */
export function parserGuard(stages: readonly Stage[], parser: number): ParserGuard {
  const guard = new Map<string, LabelFilter>();
  for (const stage of stages.slice(parser + 1)) {
    if (stage.kind !== "label_filter") continue;
    const { filter } = stage;
    if (filter.kind === "and" || filter.kind === "or") continue;
    const name = filter.kind === "string" ? filter.matcher.name : filter.name;
    if (!guard.has(name)) guard.set(name, filter);
  }
  return guard;
}
