import type { Kernels } from "../kernels.js";
import { twin } from "../twin/twin.js";

/** Both forms of the kernels by name, for `describe.each`. */
export const forms: readonly (readonly [string, Kernels])[] = [["twin", twin]];
