#!/usr/bin/env node
// Compiles assembly/index.ts to dist/wasm/kernels.wasm with AssemblyScript. Does nothing when the output is newer
// than the sources; --force compiles always.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(fileURLToPath(import.meta.url));
const output = path.join(root, "dist", "wasm", "kernels.wasm");

if (process.argv.includes("--force") || isOlder(output, sources())) await compile();

function sources() {
  const folder = path.join(root, "assembly");
  const names = fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ts"));
  return [fileURLToPath(import.meta.url), ...names.map((name) => path.join(folder, name))];
}

function isOlder(file, inputs) {
  const time = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return inputs.some((input) => fs.statSync(input).mtimeMs > time);
}

async function compile() {
  const { default: asc } = await import("assemblyscript/asc");
  fs.mkdirSync(path.dirname(output), { recursive: true });
  // Compiled beside the output and renamed: a process that starts meanwhile never reads half a module.
  const partial = `${output}.${process.pid}`;
  const { error, stderr } = await asc.main([
    path.relative(process.cwd(), path.join(root, "assembly", "index.ts")),
    ...["--outFile", path.relative(process.cwd(), partial)],
    ...["--enable", "simd", "--runtime", "stub", "--noAssert", "--initialMemory", "2"],
    ...["--optimizeLevel", "3", "--shrinkLevel", "0", "--converge", "--use", "abort="],
  ]);
  if (error) {
    process.stderr.write(stderr.toString());
    process.exit(1);
  }
  fs.renameSync(partial, output);
}
