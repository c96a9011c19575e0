import type { Kernels } from "./kernels.js";
import { twin } from "./twin/twin.js";

/** Picks the form of the kernels for this thread. */
export function loadKernels(): Kernels {
  return twin;
}
