// Fails when a folder of sources has outgrown itself: more than 15 files, or four that share a prefix and so want a folder of
// their own. Tests stand beside what they test and are not counted.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const maxFiles = 15;
const maxSharing = 3;
const problems = [];
let folders = 0;
for (const name of readdirSync("packages")) {
  for (const part of ["src", "assembly"]) {
    const root = join("packages", name, part);
    if (existsSync(root)) checkFolder(root);
  }
}

function checkFolder(folder) {
  folders++;
  const entries = readdirSync(folder, { withFileTypes: true });
  const files = entries
    .filter(
      (entry) => entry.isFile() && /\.ts$/.test(entry.name) && !/\.test\.ts$/.test(entry.name),
    )
    .map((entry) => entry.name);
  if (files.length > maxFiles)
    problems.push(`${folder} has ${files.length} files; more than ${maxFiles} want folders`);
  const byPrefix = Map.groupBy?.(files, prefixOf) ?? groupBy(files, prefixOf);
  for (const [prefix, sharing] of byPrefix) {
    if (sharing.length > maxSharing)
      problems.push(`${folder}: ${sharing.join(", ")} share a prefix; give them ${prefix}/`);
  }
  for (const entry of entries) {
    if (entry.isDirectory()) checkFolder(join(folder, entry.name));
  }
}

function prefixOf(file) {
  return file.split(/[-.]/)[0];
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`folders: ${folders} looked at, none too full`);
