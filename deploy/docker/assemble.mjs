// `node deploy/docker/assemble.mjs FOLDER` copies what the program needs at run time into a folder, after a build. The bundle
// has the code of the program and of its dependencies, so tests, sources, benchmarks and build tools are left out.
import { cpSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const [target] = process.argv.slice(2);
if (target === undefined) throw new Error("name the folder to write to");

const program = "packages/skald";
for (const file of ["package.json", "LICENSE", `${program}/package.json`, `${program}/bundle`])
  cpSync(join(root, file), join(target, file), {
    recursive: true,
    // Files with a dot are the list of the bundle's inputs and the compile cache of this machine.
    filter: (path) => !basename(path).startsWith("."),
  });
