import { type CapturePattern, scanPattern } from "@skald/kernels";
import { compileRegex, invalidArgument, type Regex } from "@skald/model";
import { type PatternPiece, parseCapturingPattern } from "../../syntax/check.js";
import { encodeText, indexOfText } from "../row/bytes.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row/row.js";
import { sanitizeLabelName } from "../row/row-labels.js";
import { BlockFields, canSearch, isWanted } from "./fields.js";

/** `| pattern "<ip> - <_> <rest>"`: the captures become labels. */
export function preparePattern(pattern: string): PreparedStage {
  const pieces = parseCapturingPattern(pattern);
  return (row, context) => compilePattern(pieces, row, context);
}

/** A capture and the literal that ends it; without literal it takes the rest. */
interface Step {
  /** Slot of the label, or -1 where it is not wanted. */
  readonly slot: number;
  readonly literal: string;
  readonly until: Uint8Array;
}

function compilePattern(
  pieces: readonly PatternPiece[],
  row: RowState,
  context: StageContext,
): RowStage {
  const { labels, line } = row;
  const first = pieces[0]!;
  const opening = first.kind === "literal" ? first.text : "";
  const prefix = encodeText(opening);
  const steps = stepsOf(pieces.slice(first.kind === "literal" ? 1 : 0), row, context);
  if (steps.length === 0) return () => true;
  const slots = steps.flatMap(({ slot }) => (slot >= 0 ? [slot] : []));
  const fields = captureSearch(opening, steps, row, context);
  const extract = (slot: number, from: number, to: number) => {
    const target = labels.parsedSlot(slot);
    if (!labels.isExtracted(target)) labels.extract(target, line.bytes, from, to);
  };
  return () => {
    if (fields?.begin(row.position)) {
      const { columns, order, count } = fields;
      for (let i = 0; i < count; i++) {
        const place = order[i]! * columns.capacity + row.position;
        const from = columns.start[place]!;
        extract(slots[order[i]!]!, from, from + columns.length[place]!);
      }
      return true;
    }
    const { bytes, start, end } = line;
    if (start === end || !startsWith(bytes, start, end, prefix)) return true;
    let at = start + prefix.length;
    for (const { slot, until } of steps) {
      const found = until.length === 0 ? -1 : indexOfText(bytes, at, end, until);
      if (slot >= 0) extract(slot, at, found < 0 ? end : found);
      if (found < 0) return true;
      at = found + until.length;
    }
    return true;
  };
}

/** The captures up to the last one that is wanted. */
function stepsOf(
  captures: readonly PatternPiece[],
  { labels }: RowState,
  { demand }: StageContext,
): Step[] {
  const steps: Step[] = [];
  for (let i = 0; i < captures.length; i += 2) {
    const { name } = captures[i] as PatternPiece & { kind: "capture" };
    const behind = captures[i + 1] as (PatternPiece & { kind: "literal" }) | undefined;
    const literal = behind?.text ?? "";
    const isUsed = name !== "_" && isWanted(demand, name);
    const slot = isUsed ? labels.names.slotOf(name) : -1;
    steps.push({ slot, literal, until: encodeText(literal) });
  }
  return steps.slice(0, steps.findLastIndex(({ slot }) => slot >= 0) + 1);
}

/** The search of the captures that are used, in whole blocks. */
function captureSearch(
  opening: string,
  steps: readonly Step[],
  row: RowState,
  context: StageContext,
): BlockFields | undefined {
  const names = steps.flatMap(({ slot }) => (slot >= 0 ? [row.labels.names.nameOf(slot)] : []));
  if (!canSearch(names, context)) return undefined;
  let column = 0;
  const pattern: CapturePattern = {
    texts: [opening, ...steps.map(({ literal }) => literal)],
    columns: Int32Array.from(steps, ({ slot }) => (slot >= 0 ? column++ : -1)),
    columnCount: names.length,
  };
  const fields = new BlockFields(names, ({ bytes, offsets }, selection, _names, found) =>
    scanPattern(bytes, offsets, selection, pattern, found),
  );
  const options = { complete: true, enough: 0 };
  row.beforeRows(({ lines, selection }) => fields.search(lines, selection, options));
  return fields;
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
