import { loadKernels } from "../load.js";
import type { Kernels } from "../shared/kernels.js";

/** Both forms of the kernels by name, for `describe.each`. */
export const forms: readonly (readonly [string, Kernels])[] = [
  ["twin", loadKernels("twin")],
  ["wasm", loadKernels("wasm")],
];
