// `npm run bench [name...]`: builds, and runs the benchmarks of the packages; each prints a table.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { bootstrap } from "./bootstrap.mjs";
import { root } from "./runtime.mjs";

const node = bootstrap();
const wanted = process.argv.slice(2);
const benches = readdirSync(join(root, "packages")).flatMap((name) => {
  const folder = join(root, "packages", name, "bench");
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter(
    (file) => file.endsWith(".mjs") && !/^(fuzz|data)/.test(file),
  );
  return files.map((file) => ({
    title: `${name}/${file.slice(0, -".mjs".length)}`,
    path: join(folder, file),
  }));
});
let failed = false;
for (const { title, path } of benches) {
  if (wanted.length > 0 && !wanted.some((text) => title.includes(text))) continue;
  console.log(`\n# ${title}`);
  failed =
    spawnSync(node, ["--expose-gc", path], { cwd: root, stdio: "inherit" }).status !== 0 || failed;
}
process.exit(failed ? 1 : 0);
