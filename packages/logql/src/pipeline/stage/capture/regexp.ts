import { compileRegex, invalidArgument, type Regex } from "@skald/model";
import { sanitizeLabelName } from "../../row/labels.js";
import { isWanted } from "../fields/field-sink.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";

/** `| regexp "..."`: the named groups of the first match become labels. */
export function prepareRegexp(pattern: string): PreparedStage {
  const regex = compileRegex(pattern, { anchored: false });
  const names = regex.groupNames.filter((name) => name !== "");
  if (names.length === 0) throw invalidArgument("at least one named capture must be supplied");
  return (row, context) => compileRegexp(regex, row, context);
}

function compileRegexp(regex: Regex, row: RowState, { demand }: StageContext): RowStage {
  const { labels, line } = row;
  const groups = [...regex.groupNames.entries()]
    .filter(([, name]) => name !== "" && isWanted(demand, sanitizeLabelName(name)))
    .map(([index, name]) => ({ index, slot: labels.names.slotOf(sanitizeLabelName(name)) }));
  if (groups.length === 0) return () => true;
  return () => {
    const match = regex.exec(line.text);
    if (match === undefined) return true;
    for (const { index, slot } of groups) {
      const target = labels.parsedSlot(slot);
      if (labels.isExtracted(target)) continue;
      const start = labels.arena.append(match.groups[index] ?? "");
      labels.extract(target, labels.arena.bytes, start, labels.arena.used);
    }
    return true;
  };
}
