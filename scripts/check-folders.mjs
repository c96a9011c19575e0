// Fails when a folder of sources has more than 15 files. Tests stand beside what they test and are not counted.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const maxFiles = 15;
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
  const files = entries.filter(({ name }) => /\.tsx?$/.test(name) && !/\.test\.ts$/.test(name));
  if (files.length > maxFiles)
    problems.push(`${folder} has ${files.length} files; split it at ${maxFiles}`);
  for (const entry of entries) {
    if (entry.isDirectory()) checkFolder(join(folder, entry.name));
  }
}

if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log(`folders: ${folders}, none with more than ${maxFiles} files`);
