// Fails when a package imports one of its own layer or above, imports a package that it does not declare, or declares one that it
// does not import, and when a folder imports one above it in its package. The layers are in layers.json, the lowest first.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, normalize } from "node:path";

const { packages: rows, folders } = JSON.parse(readFileSync("layers.json", "utf8"));
/** Packages that are loaded by name at run time, without an import. */
const loadedByName = new Map([["storage", ["@bokuweb/zstd-wasm"]]]);
const rowOf = new Map(rows.flatMap((names, row) => names.map((name) => [name, row])));
const rootDependencies = Object.keys(
  JSON.parse(readFileSync("package.json", "utf8")).devDependencies,
);
/** `import ... from "x"`, `export ... from "x"`, `import("x")`. */
const importPattern =
  /(?:^(?:import|export)\b[^;"]*?from\s+|^import\s+|\bimport\()"([^".][^"]*)"/gm;
/** Imports of files of the same package. */
const ownImportPattern = /^(?:import|export)\b[^;"]*?(?:from\s+)?"(\.[^"]+)"/gm;
const problems = [];
for (const name of readdirSync("packages")) {
  if (!existsSync(`packages/${name}/package.json`)) continue;
  const row = rowOf.get(name);
  if (row === undefined) {
    problems.push(`packages/${name} is on no floor of layers.json`);
    continue;
  }
  checkPackage(name, row);
  checkFolders(name);
}

function checkPackage(name, row) {
  const manifest = JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8"));
  const declared = Object.keys(manifest.dependencies ?? {});
  const forTests = Object.keys(manifest.devDependencies ?? {});
  for (const dependency of declared.filter((one) => one.startsWith("@skald/"))) {
    const other = dependency.slice("@skald/".length);
    // testkit imports only model, and the tests of every package may import testkit.
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

/** Checks that folders import only folders before them in the list; "." is the files beside index.ts. */
function checkFolders(name) {
  const root = `packages/${name}/src`;
  if (name === "test" || name === "testkit" || !existsSync(root)) return;
  const files = readdirSync(root, { recursive: true })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => /\.tsx?$/.test(file) && !isForTests(file) && !isDoor(root, file));
  const found = [...new Set(files.map((file) => dirname(file)))].sort();
  const floors = folders[name] ?? ["."];
  if (found.join() !== [...floors].sort().join())
    problems.push(
      `layers.json names the folders ${floors.join(", ")} of ${name}, there are ${found.join(", ")}`,
    );
  const floorOf = new Map(floors.map((folder, floor) => [folder, floor]));
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    for (const [, spec] of text.matchAll(ownImportPattern)) {
      const target = normalize(join(dirname(file), spec)).replace(/\.js$/, ".ts");
      if (isDoor(root, target) || floorOf.get(dirname(target)) <= floorOf.get(dirname(file)))
        continue;
      problems.push(
        `${name}: ${file} imports ${target}, which is on a floor above it in layers.json`,
      );
    }
  }
}

/** Whether a file beside index.ts only exports what other files have, for other packages. */
function isDoor(root, file) {
  if (file.includes("/") || !existsSync(join(root, file))) return false;
  const text = readFileSync(join(root, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
  return (
    text
      .replace(/export\s+(?:type\s+)?(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+"[^"]+";/g, "")
      .trim() === ""
  );
}

/** The packages that the files of a package import, types included. */
function importsOf(name, isWanted) {
  const found = new Set();
  for (const folder of ["src", "bench"]) {
    const root = `packages/${name}/${folder}`;
    if (!existsSync(root)) continue;
    for (const file of readdirSync(root, { recursive: true })) {
      if (!/\.(tsx?|mjs)$/.test(file) || !isWanted(join(folder, file))) continue;
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
const folderCount = Object.values(folders).flat().length;
console.log(`layers: ${rowOf.size} packages, ${folderCount} folders, no import upward or sideways`);
