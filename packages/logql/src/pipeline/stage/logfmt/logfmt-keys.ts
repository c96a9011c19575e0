import { invalidArgument } from "@skald/model";
import type { LogfmtStage } from "../../../syntax/ast.js";
import { sanitizeLabelName, stageErrors } from "../../row/labels.js";
import { labelState } from "../../row/row-labels.js";
import { isWanted } from "../fields/field-sink.js";
import { demandsErrors, KeyTree } from "../fields/key-tree.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";
import { logfmtFault } from "./logfmt.js";
import { LogfmtReader } from "./logfmt-reader.js";

/**
 * `| logfmt a="x", b`: only these keys. The last value of a key wins, a key that is spelled like the label sets it too,
 * and a label that is nowhere gets an empty value.
 */
export function prepareLogfmtKeys(stage: LogfmtStage): PreparedStage {
  for (const { path } of stage.extractions) checkKey(path);
  return (row, context) => compileLogfmtKeys(stage, row, context);
}

function checkKey(path: string): void {
  const at = /[^A-Za-z0-9_]/u.exec(path);
  if (at === null) return;
  throw invalidArgument(`cannot parse expression [${path}]: unexpected char ${at[0]}`);
}

function compileLogfmtKeys(
  { strict, extractions }: LogfmtStage,
  row: RowState,
  { demand }: StageContext,
): RowStage {
  const { labels, line } = row;
  const { names, arena } = labels;
  const wanted = extractions.filter(({ label }) => isWanted(demand, label));
  if (wanted.length === 0 && !(strict && demandsErrors(demand))) return () => true;
  const reader = new LogfmtReader(arena);
  const keyNames = wanted.flatMap(({ label, path }) => [sanitizeLabelName(path), label]);
  const keys = new KeyTree(names, new Set(keyNames));
  const labelSlots = wanted.map(({ label }) => names.slotOf(label));
  // by slot of the key: the labels that it sets
  const targets: number[][] = [];
  for (const [i, { label, path }] of wanted.entries()) {
    for (const key of new Set([sanitizeLabelName(path), label])) {
      const slot = names.slotOf(key);
      targets[slot] = [...(targets[slot] ?? []), labelSlots[i] as number];
    }
  }
  /** Labels set by this stage in this row: it may replace them. */
  const own = new Set<number>();
  return () => {
    own.clear();
    keys.beginLine();
    const { bytes, start } = line;
    reader.begin(bytes, start, line.end);
    for (let got = reader.next(); got !== "end"; got = reader.next()) {
      if (got === "fault") {
        if (!strict) continue;
        labels.fail(stageErrors.logfmt, logfmtFault(reader, start));
        break;
      }
      const node = keys.child(0, bytes, reader.keyStart, reader.keyEnd);
      const slots = targets[keys.slot[node]!];
      if (slots === undefined) continue;
      for (const slot of slots) {
        const target = labels.parsedSlot(slot);
        if (labels.isExtracted(target) && !own.has(target)) continue;
        own.add(target);
        labels.extract(target, reader.valueBytes, reader.valueStart, reader.valueEnd);
      }
    }
    for (const slot of labelSlots) {
      if (!labels.find(slot)) labels.set(labelState.parsed, slot, bytes, start, start);
    }
    return true;
  };
}
