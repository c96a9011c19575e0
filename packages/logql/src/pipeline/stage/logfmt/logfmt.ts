import { scanLogfmtFields } from "@skald/kernels";
import type { LogfmtStage } from "../../../syntax/ast.js";
import { stageErrors } from "../../row/labels.js";
import { fieldScan } from "../fields/field-scan.js";
import { FieldSink, sinkSays } from "../fields/field-sink.js";
import { KeyTree } from "../fields/key-tree.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";
import { LogfmtReader } from "./logfmt-reader.js";

/** `| logfmt`: every pair becomes a label; tolerant unless strict. */
export function prepareLogfmt(stage: LogfmtStage): PreparedStage {
  return (row, context) => compileLogfmt(stage, row, context);
}

function compileLogfmt(
  { strict, keepEmpty }: LogfmtStage,
  row: RowState,
  context: StageContext,
): RowStage {
  const { labels, line } = row;
  const reader = new LogfmtReader(labels.arena);
  const keys = new KeyTree(labels.names, context.demand);
  const sink = new FieldSink(row, context);
  const scan = fieldScan(row, context, {
    fails: strict,
    find: ({ bytes, offsets }, selection, names, found, { enough }) => {
      const options = { strict, keepEmpty, lastWins: false, enough };
      scanLogfmtFields(bytes, offsets, selection, names, found, options);
    },
  });
  const decode = (target: number, bytes: Uint8Array, from: number, to: number) => {
    reader.decode(bytes, from, to);
    return sink.put(target, reader.valueBytes, reader.valueStart, reader.valueEnd);
  };
  return () => {
    if (!sink.beginRow()) return true;
    const known = scan?.handOver(sink, decode);
    if (known !== undefined) return known !== sinkSays.drop;
    keys.beginLine();
    const { bytes, start } = line;
    reader.begin(bytes, start, line.end);
    while (true) {
      const got = reader.next();
      if (got === "end") return true;
      if (got === "fault") {
        if (!strict) continue;
        labels.fail(stageErrors.logfmt, logfmtFault(reader, start));
        return true;
      }
      if (reader.valueStart === reader.valueEnd && !keepEmpty) continue;
      const node = keys.child(0, bytes, reader.keyStart, reader.keyEnd);
      const slot = keys.slot[node]!;
      if (slot < 0) continue;
      const target = sink.target(slot, keys.wants[node]!);
      if (target < 0) continue;
      const says = sink.put(target, reader.valueBytes, reader.valueStart, reader.valueEnd);
      if (says === sinkSays.drop) return false;
      if (says === sinkSays.done) return true;
    }
  };
}

/** Text of a syntax error; positions count from 1. */
export function logfmtFault(reader: LogfmtReader, lineStart: number): string {
  return `logfmt syntax error at pos ${reader.faultAt - lineStart + 1} : ${reader.faultText}`;
}
