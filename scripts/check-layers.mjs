// Fails when a package imports one of its own row or above: the rows are those of ARCHITECTURE.md.
import { readdirSync, readFileSync } from "node:fs";

const rows = [
  ["model", "kernels", "testkit"],
  ["logql", "runtime"],
  ["ring", "storage", "transport"],
  [
    "distributor",
    "ingester",
    "querier",
    "frontend",
    "scheduler",
    "ruler",
    "compactor",
    "index-gateway",
  ],
  ["ui", "cli"],
  ["skald", "test"],
];
const rowOf = new Map(rows.flatMap((names, row) => names.map((name) => [name, row])));
const problems = [];
for (const name of readdirSync("packages")) {
  const row = rowOf.get(name);
  if (row === undefined) {
    problems.push(`packages/${name} is in no row`);
    continue;
  }
  const manifest = JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8"));
  const own = (section) =>
    Object.keys(manifest[section] ?? {})
      .filter((dependency) => dependency.startsWith("@skald/"))
      .map((dependency) => dependency.slice("@skald/".length));
  for (const dependency of own("dependencies")) {
    // testkit stands on model alone, and any package's tests may import it.
    const allowed = rowOf.get(dependency) < row || (name === "testkit" && dependency === "model");
    if (!allowed) problems.push(`${name} must not import ${dependency}`);
  }
  for (const dependency of own("devDependencies")) {
    if (dependency !== "testkit")
      problems.push(`${name} may have only testkit among its dev dependencies, not ${dependency}`);
  }
}
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`layers: ${rowOf.size} packages known, no upward or sideways import`);
