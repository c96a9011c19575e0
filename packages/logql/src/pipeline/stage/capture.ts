import { compileRegex, invalidArgument, type Regex } from "@skald/model";
import { type PatternPiece, parseCapturingPattern } from "../../syntax/check.js";
import { encodeText, indexOfText } from "../row/bytes.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row/row.js";
import { sanitizeLabelName } from "../row/row-labels.js";
import { isWanted } from "./fields.js";

/** `| pattern "<ip> - <_> <rest>"`: the captures become labels. */
export function preparePattern(pattern: string): PreparedStage {
  const pieces = parseCapturingPattern(pattern);
  return (row, context) => compilePattern(pieces, row, context);
}

/** A capture and the literal that ends it; without literal it takes the rest. */
interface Step {
  /** Slot of the label, or -1. */
  readonly slot: number;
  readonly until: Uint8Array | undefined;
}

function compilePattern(
  pieces: readonly PatternPiece[],
  row: RowState,
  { demand }: StageContext,
): RowStage {
  const { labels, line } = row;
  const first = pieces[0]!;
  const prefix = encodeText(first.kind === "literal" ? first.text : "");
  const captures = pieces.slice(first.kind === "literal" ? 1 : 0);
  const steps: Step[] = [];
  for (let i = 0; i < captures.length; i += 2) {
    const { name } = captures[i] as PatternPiece & { kind: "capture" };
    const literal = captures[i + 1] as (PatternPiece & { kind: "literal" }) | undefined;
    steps.push({
      slot: name !== "_" && isWanted(demand, name) ? labels.names.slotOf(name) : -1,
      until: literal && encodeText(literal.text),
    });
  }
  const last = steps.findLastIndex(({ slot }) => slot >= 0);
  if (last < 0) return () => true;
  return () => {
    const { bytes, start, end } = line;
    if (start === end || !startsWith(bytes, start, end, prefix)) return true;
    let at = start + prefix.length;
    for (let i = 0; i <= last; i++) {
      const { slot, until } = steps[i]!;
      const found = until === undefined ? -1 : indexOfText(bytes, at, end, until);
      const stop = found < 0 ? end : found;
      if (slot >= 0) {
        const target = labels.parsedSlot(slot);
        if (!labels.isExtracted(target)) labels.extract(target, bytes, at, stop);
      }
      if (found < 0) return true;
      at = found + until!.length;
    }
    return true;
  };
}

function startsWith(bytes: Uint8Array, start: number, end: number, prefix: Uint8Array): boolean {
  if (end - start < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[start + i] !== prefix[i]) return false;
  return true;
}

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
