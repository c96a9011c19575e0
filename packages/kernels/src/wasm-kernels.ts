import type { Kernels } from "./kernels.js";
import { scanJsonFields, scanLogfmtFields } from "./wasm/fields.js";
import { hashRows } from "./wasm/hash.js";
import { detectLevels } from "./wasm/levels.js";
import type { KernelMemory } from "./wasm/memory.js";
import { groupNeedleBits, markNeedleKeys, markValueKeys } from "./wasm/needle-bits.js";
import { collectNeedleKeys, solveNeedleFilter } from "./wasm/needle-filter.js";
import { decodeSnappy, decodeSnappyProtobufPush, scanJsonPush } from "./wasm/push.js";
import { selectContains, selectContainsAny } from "./wasm/search.js";

/** The compiled kernels over one memory. */
export function wasmKernels(memory: KernelMemory): Kernels {
  return {
    form: "wasm",
    decodeSnappy: (...input) => decodeSnappy(memory, ...input),
    decodeSnappyProtobufPush: (...input) => decodeSnappyProtobufPush(memory, ...input),
    scanJsonPush: (...input) => scanJsonPush(memory, ...input),
    detectLevels: (...input) => detectLevels(memory, ...input),
    selectContains: (...input) => selectContains(memory, ...input),
    selectContainsAny: (...input) => selectContainsAny(memory, ...input),
    scanJsonFields: (...input) => scanJsonFields(memory, ...input),
    scanLogfmtFields: (...input) => scanLogfmtFields(memory, ...input),
    collectNeedleKeys: (...input) => collectNeedleKeys(memory, ...input),
    solveNeedleFilter: (...input) => solveNeedleFilter(memory, ...input),
    markNeedleKeys: (...input) => markNeedleKeys(memory, ...input),
    markValueKeys: (...input) => markValueKeys(memory, ...input),
    groupNeedleBits: (...input) => groupNeedleBits(memory, ...input),
    hashRows: (...input) => hashRows(memory, ...input),
  };
}
