import { existsSync, readFileSync } from "node:fs";
import type { Kernels } from "./shared/kernels.js";
import { twin } from "./twin/kernels.js";
import { webAssembly } from "./wasm/abi.js";
import { wasmKernels } from "./wasm/kernels.js";
import { KernelMemory } from "./wasm/memory.js";

/**
 * Picks the form of the kernels for this thread: the compiled one where it can run, else the twin. SKALD_KERNELS
 * forces one of them: `twin`, or `wasm`, which throws where the module is not built or SIMD is missing.
 */
export function loadKernels(choice = process.env.SKALD_KERNELS): Kernels {
  if (choice === "twin") return twin;
  const module = loadModule();
  if (module !== undefined) return wasmKernels(new KernelMemory(module));
  if (choice === "wasm") throw new Error("kernels.wasm is not built or needs a runtime with simd");
  return twin;
}

/** The compiled module; undefined where there is none or where validation meets an unknown instruction. */
export function loadModule(): object | undefined {
  if (webAssembly === undefined || !existsSync(moduleUrl)) return undefined;
  const bytes = readFileSync(moduleUrl);
  return webAssembly.validate(bytes) ? new webAssembly.Module(bytes) : undefined;
}

const moduleUrl = new URL("./wasm/kernels.wasm", import.meta.url);
