// Fails when a package imports one of its own row or above, imports what it does not declare, or declares what it does not
// import. The rows are those of ARCHITECTURE.md.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";

const rows = [
  ["model", "testkit"],
  ["kernels", "runtime"],
  ["logql", "push", "storage", "transport", "ring"],
  ["contracts"],
  ["scan"],
  [
    "distributor",
    "ingester",
    "querier",
    "frontend",
    "scheduler",
    "patterns",
    "ruler",
    "compactor",
    "index-gateway",
  ],
  ["ui", "cli"],
  ["skald", "test"],
];
/** Loaded by name at run time, so that no import shows it. */
const loadedByName = new Map([["storage", ["@bokuweb/zstd-wasm"]]]);
const rowOf = new Map(rows.flatMap((names, row) => names.map((name) => [name, row])));
const rootDependencies = Object.keys(
  JSON.parse(readFileSync("package.json", "utf8")).devDependencies,
);
/** `import ... from "x"`, `export ... from "x"`, `import("x")`. */
const importPattern =
  /(?:^(?:import|export)\b[^;"]*?from\s+|^import\s+|\bimport\()"([^".][^"]*)"/gm;
const problems = [];
for (const name of readdirSync("packages")) {
  if (!existsSync(`packages/${name}/package.json`)) continue;
  const row = rowOf.get(name);
  if (row === undefined) {
    problems.push(`packages/${name} is in no row`);
    continue;
  }
  checkPackage(name, row);
}

function checkPackage(name, row) {
  const manifest = JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8"));
  const declared = Object.keys(manifest.dependencies ?? {});
  const forTests = Object.keys(manifest.devDependencies ?? {});
  for (const dependency of declared.filter((one) => one.startsWith("@skald/"))) {
    const other = dependency.slice("@skald/".length);
    // testkit stands on model alone, and any package's tests may import it.
    const allowed = rowOf.get(other) < row || (name === "testkit" && other === "model");
    if (!allowed) problems.push(`${name} must not import ${other}`);
  }
  for (const dependency of forTests) {
    if (dependency !== "@skald/testkit")
      problems.push(`${name} may have only testkit among its dev dependencies, not ${dependency}`);
  }
  const shipped = importsOf(name, (file) => !isForTests(file));
  const tested = importsOf(name, isForTests);
  const isTests = name === "test" || name === "testkit";
  for (const one of declared) {
    const used = shipped.has(one) || (isTests && tested.has(one));
    if (!used && !(loadedByName.get(name) ?? []).includes(one))
      problems.push(`${name} declares ${one}, which nothing of it imports`);
  }
  for (const one of forTests) {
    if (!tested.has(one)) problems.push(`${name} declares ${one}, which no test of it imports`);
  }
  for (const one of shipped) {
    if (!declared.includes(one) && !(isTests && rootDependencies.includes(one)))
      problems.push(`${name} imports ${one}, which it does not declare`);
  }
}

/** Packages that files of a package import, types included. */
function importsOf(name, isWanted) {
  const found = new Set();
  for (const folder of ["src", "bench"]) {
    const root = `packages/${name}/${folder}`;
    if (!existsSync(root)) continue;
    for (const file of readdirSync(root, { recursive: true })) {
      if (!/\.(ts|mjs)$/.test(file) || !isWanted(join(folder, file))) continue;
      const text = readFileSync(join(root, file), "utf8");
      for (const [, spec] of text.matchAll(importPattern)) {
        const parts = spec.split("/");
        const one = spec.startsWith("@") ? parts.slice(0, 2).join("/") : parts[0];
        if (spec.startsWith("node:") || builtinModules.includes(one)) continue;
        if (one !== `@skald/${name}`) found.add(one);
      }
    }
  }
  return found;
}

function isForTests(file) {
  return /\.(test|suite)\.ts$|(^|\/)testing\/|^bench\//.test(file);
}

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`layers: ${rowOf.size} packages known, no upward or sideways import`);
