import type { JsonStage } from "../../../syntax/ast.js";
import { encodeText } from "../../row/bytes.js";
import { stageErrors } from "../../row/labels.js";
import { labelState, type RowLabels } from "../../row/row-labels.js";
import { blankBrokenUtf8 } from "../../row/utf8-blank.js";
import { isWanted } from "../fields/field-sink.js";
import { demandsErrors } from "../fields/key-tree.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";
import { unescapeInto } from "./bytes.js";
import { JsonFinder, type PathStep } from "./find.js";
import { parseJsonPath } from "./path.js";

interface PathExtraction {
  readonly label: string;
  readonly path: readonly PathStep[];
}

/** `| json a="b.c[0]", d`: the values at these paths; a path that leads nowhere gives an empty label. */
export function prepareJsonPaths(stage: JsonStage): PreparedStage {
  const extractions = stage.extractions.map(({ label, path }) => ({
    label,
    path: parseJsonPath(path).map((step) =>
      typeof step === "number" ? step : { bytes: encodeText(step) },
    ),
  }));
  return (row, context) => compileJsonPaths(extractions, row, context);
}

function compileJsonPaths(
  extractions: readonly PathExtraction[],
  row: RowState,
  { demand }: StageContext,
): RowStage {
  const { labels, line } = row;
  const wanted = extractions
    .filter(({ label }) => isWanted(demand, label))
    .map(({ label, path }) => ({ slot: labels.names.slotOf(label), path }));
  const asksForErrors = demandsErrors(demand);
  if (wanted.length === 0 && !asksForErrors) return () => true;
  const finder = new JsonFinder();
  return () => {
    const { bytes, start, end } = line;
    const first = start < end ? bytes[start]! : 0;
    if (first !== 123 && first !== 91 && first !== 34) {
      labels.fail(stageErrors.json);
      return true;
    }
    for (const { slot, path } of wanted) {
      if (finder.find(bytes, start, end, path)) extractFound(labels, slot, bytes, finder);
    }
    for (const { slot } of wanted) {
      if (!labels.find(slot)) labels.set(labelState.parsed, slot, bytes, start, start);
    }
    return true;
  };
}

function extractFound(
  labels: RowLabels,
  slot: number,
  bytes: Uint8Array,
  finder: JsonFinder,
): void {
  const target = labels.parsedSlot(slot);
  if (labels.isExtracted(target)) return;
  if (finder.isNull) labels.extract(target, bytes, finder.start, finder.start);
  else if (finder.isString) extractJsonString(labels, target, bytes, finder.start, finder.end);
  else labels.extract(target, bytes, finder.start, finder.end);
}

/** Extracts a JSON string without escapes; a bad escape gives an empty value, broken characters blanks. */
export function extractJsonString(
  labels: RowLabels,
  target: number,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  const { arena } = labels;
  const start = unescapeInto(arena, bytes, from, to);
  if (start < 0) {
    labels.extract(target, bytes, from, from);
    return;
  }
  const source = arena.bytes;
  const stop = arena.used;
  const repaired = blankBrokenUtf8(arena, source, start, stop);
  if (repaired < 0) labels.extract(target, source, start, stop);
  else labels.extract(target, arena.bytes, repaired, arena.used);
}
