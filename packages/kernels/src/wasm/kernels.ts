import { paddingBytes } from "../shared/bytes.js";
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
    gatherValues: gatherValues(memory),
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

/** Copies values, offsets and picks in, and the values of the rows out. */
const gatherValues =
  (memory: KernelMemory): Kernels["gatherValues"] =>
  (bytes, offsets, picks, rows) => {
    const kernels = memory.open();
    try {
      const values = memory.copyIn(bytes);
      const starts = memory.copyInWords(offsets, offsets.length);
      const picked = memory.copyInWords(picks, rows);
      const ends = memory.take((rows + 1) * 4);
      const count = offsets.length - 1;
      const size = kernels.placeValues(starts, count, bytes.length, picked, rows, ends);
      if (size < 0) throw new RangeError("a value that is picked is out of range");
      const out = memory.take(size);
      kernels.gatherValues(values, starts, picked, rows, ends, out);
      const gathered = new Uint8Array(size + paddingBytes);
      gathered.set(memory.bytes(out, size));
      return { bytes: gathered, offsets: memory.words(ends, rows + 1).slice() };
    } finally {
      memory.close();
    }
  };
