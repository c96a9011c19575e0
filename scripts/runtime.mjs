// The Node that runs the program.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const runtimeVersion = "24.21.0";
const oldestFastNode = [22, 15];

/** The package of the registry that has a Node for this machine. */
export const packageName = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
export const home = join(root, ".runtime");
const binary = join(
  home,
  "node_modules",
  packageName,
  "bin",
  process.platform === "win32" ? "node.exe" : "node",
);

/**
 * This Node, or the one that an earlier build fetched; undefined when neither has zstd. With SKALD_NO_RUNTIME=1 it is always
 * this one: nothing is fetched, and a Node without zstd uses a WebAssembly build of it, which is slower.
 */
export function builtRuntime() {
  if (process.env.SKALD_NO_RUNTIME === "1") return process.execPath;
  if (atLeast(process.versions.node, oldestFastNode)) return process.execPath;
  return existsSync(binary) ? binary : undefined;
}

function atLeast(version, [major, minor]) {
  const [a, b] = version.split(".").map(Number);
  return a > major || (a === major && b >= minor);
}
