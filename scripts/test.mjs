// `npm test`: installs, builds, lints, runs every test, and ends with `N passed, N failed`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrap, root } from "./bootstrap.mjs";

const node = bootstrap();
const lint = spawnSync(node, ["scripts/lint.mjs"], { cwd: root, stdio: "inherit" });
const folder = mkdtempSync(join(tmpdir(), "skald-test-"));
const report = join(folder, "report.json");
const jest = [
  "--experimental-vm-modules",
  "--disable-warning=ExperimentalWarning",
  "node_modules/jest/bin/jest.js",
];
const flags =
  node === process.execPath && Number(process.versions.node.split(".")[0]) < 22
    ? jest.filter((flag) => !flag.startsWith("--disable-warning"))
    : jest;
spawnSync(node, [...flags, "--json", `--outputFile=${report}`, ...process.argv.slice(2)], {
  cwd: root,
  stdio: ["ignore", "ignore", "inherit"],
});

let passed = 0;
let failed = lint.status === 0 ? 0 : 1;
try {
  const result = JSON.parse(readFileSync(report, "utf8"));
  passed = result.numPassedTests;
  failed += result.numFailedTests + result.numRuntimeErrorTestSuites;
} catch {
  failed += 1;
}
rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
