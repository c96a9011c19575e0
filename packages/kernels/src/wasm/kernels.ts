import type { Kernels } from "../shared/kernels.js";
import {
  detectLevels,
  scanJsonFields,
  scanJsonKeys,
  scanLogfmtFields,
  scanPattern,
} from "./fields.js";
import type { KernelMemory } from "./memory.js";
import {
  collectNeedleKeys,
  groupNeedleBits,
  markNeedleKeys,
  markValueKeys,
  solveNeedleFilter,
} from "./needle.js";
import { decodeSnappy, decodeSnappyProtobufPush, scanJsonPush } from "./push.js";
import { selectContains, selectContainsAny } from "./search.js";

/** The compiled kernels over one memory. */
export function wasmKernels(memory: KernelMemory): Kernels {
  return {
    form: "wasm",
    decodeSnappy: decodeSnappy(memory),
    decodeSnappyProtobufPush: decodeSnappyProtobufPush(memory),
    scanJsonPush: scanJsonPush(memory),
    detectLevels: detectLevels(memory),
    selectContains: selectContains(memory),
    selectContainsAny: selectContainsAny(memory),
    scanJsonFields: scanJsonFields(memory),
    scanLogfmtFields: scanLogfmtFields(memory),
    scanJsonKeys: scanJsonKeys(memory),
    scanPattern: scanPattern(memory),
    collectNeedleKeys: collectNeedleKeys(memory),
    solveNeedleFilter: solveNeedleFilter(memory),
    markNeedleKeys: markNeedleKeys(memory),
    markValueKeys: markValueKeys(memory),
    groupNeedleBits: groupNeedleBits(memory),
    hashRows: hashRows(memory),
  };
}

/** Copies the rows in, and their hashes out. */
const hashRows =
  (memory: KernelMemory): Kernels["hashRows"] =>
  (bytes, offsets, rows, high, low) => {
    const kernels = memory.open();
    try {
      const text = memory.copyIn(bytes);
      const starts = memory.copyInWords(offsets, rows + 1);
      const highAt = memory.take(rows * 4);
      const lowAt = memory.take(rows * 4);
      kernels.hashRows(text, bytes.length, starts, rows, highAt, lowAt);
      high.set(memory.words(highAt, rows));
      low.set(memory.words(lowAt, rows));
    } finally {
      memory.close();
    }
  };
