// `npm test`: installs, builds, lints, and runs every test except those of whole processes. It ends with `N passed, N failed`, and
// `, N skipped` when tests were left out. The lines before name the programs that the tests used, and those that were missing.
// `npm run test:cluster` (`--cluster`) runs the tests of whole processes, packages/test, which start servers and clusters.
// `npm run test:ui` (`--ui`) runs the tests of the web interface in a real Chromium.
// `npm run test:docker` (`--docker`) runs the test of the containers of docker-compose.yml, where Docker answers.
// `npm run jest -- packages/logql/dist/engine` (`--jest`) builds and runs only Jest, with its output, for single test files.
// Other arguments go to Jest: a part of a path runs only the tests with this part in their paths.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import module from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { bootstrap } from "./bootstrap.mjs";
import { root } from "./runtime.mjs";

const isDocker = process.argv[2] === "--docker";
if (isDocker && !dockerAnswers()) {
  console.log(
    "Docker or its compose plugin does not answer: the test of the containers is left out",
  );
  process.exit(0);
}
const node = bootstrap();
if (process.argv[2] === "--jest") {
  const { status } = jest(process.argv.slice(3), { stdio: "inherit" });
  process.exit(status ?? 1);
}
const failures = [];
const isCluster = process.argv[2] === "--cluster";
const isInterface = process.argv[2] === "--ui";
const asked = process.argv.slice(isCluster || isDocker || isInterface ? 3 : 2);
if (!isCluster && !isDocker && !isInterface) {
  const lint = spawnSync(node, ["scripts/lint.mjs"], { cwd: root, stdio: "inherit" });
  if (lint.status !== 0) failures.push("lint, see above");
}

const folder = mkdtempSync(join(tmpdir(), "skald-test-"));
const report = join(folder, "report.json");
const programs = join(folder, "programs");
jest(["--json", `--outputFile=${report}`, ...selection()], {
  env: { SKALD_TEST_PROGRAMS: programs, ...(isDocker ? dockerEnvironment() : {}) },
  // Jest writes progress and failures to stderr; stdout would repeat the report.
  stdio: ["ignore", "ignore", "inherit"],
});

let [passed, skipped] = [0, 0];
try {
  const result = JSON.parse(readFileSync(report, "utf8"));
  passed = result.numPassedTests;
  skipped = result.numPendingTests;
  for (const suite of result.testResults) failures.push(...failuresOf(suite));
} catch {
  failures.push("jest ended without a report, see above");
}
const used = existsSync(programs) ? programsIn(readFileSync(programs, "utf8")) : [];
rmSync(folder, { recursive: true, force: true });
if (failures.length > 0)
  console.log(`\nfailed:\n${failures.map((name) => `  ${name}\n`).join("")}`);
if (passed + skipped === 0 && failures.length === 0) failures.push("no test was found");
if (used.length > 0) console.log(used.join("\n"));
const end = skipped === 0 ? "" : `, ${skipped} skipped`;
console.log(`${passed} passed, ${failures.length} failed${end}`);
process.exit(failures.length === 0 ? 0 : 1);

/** Runs Jest with the Node that the build found. A Node without hooks, when no other could be fetched, is slower. */
function jest(args, { stdio, env = {} }) {
  const isOld = node === process.execPath && module.registerHooks === undefined;
  const options = isOld
    ? ["--experimental-vm-modules", "--no-warnings"]
    : ["--disable-warning=ExperimentalWarning"];
  // Jest and the processes that tests start keep their compiled code between runs.
  const NODE_COMPILE_CACHE = join(root, "node_modules", ".cache", "compile");
  return spawnSync(node, [...options, "node_modules/jest/bin/jest.js", ...args], {
    cwd: root,
    env: { NODE_COMPILE_CACHE, ...env, ...process.env },
    stdio,
  });
}

/** The arguments that choose the tests. */
function selection() {
  const hasPath = asked.some((one) => !one.startsWith("-"));
  if (isDocker) return hasPath ? asked : [...asked, "packages/test/dist/docker.test"];
  if (isInterface) return hasPath ? asked : [...asked, "packages/test/dist/ui/"];
  const own = ["/packages/test/dist/ui/", "/packages/test/dist/docker.test"];
  const others = ["/node_modules/", ...(isCluster ? own : ["/packages/test/"])];
  const ignored = others.map((one) => `--testPathIgnorePatterns=${one}`);
  if (isCluster) return hasPath ? asked : [...asked, "packages/test/", ...ignored];
  return hasPath ? asked : [...asked, ...ignored];
}

/** Whether this user may ask a Docker daemon, and its client has the compose plugin. */
function dockerAnswers() {
  return ["info", "compose version"].every(
    (command) => spawnSync("docker", command.split(" "), { stdio: "ignore" }).status === 0,
  );
}

/** What Jest needs to know for the test of the containers. */
function dockerEnvironment() {
  const ryuk = spawnSync("docker", ["image", "ls", "-q", "testcontainers/ryuk"]);
  const hasRyuk = ryuk.stdout.length > 0;
  // Ryuk removes the containers of a test that was killed. The test itself removes its own, so an image that is not there is
  // not fetched for it.
  return { SKALD_TEST_DOCKER: "1", ...(hasRyuk ? {} : { TESTCONTAINERS_RYUK_DISABLED: "true" }) };
}

/** A line for each program that tests use when it is installed, from the notes of `noteProgram` of testkit. */
function programsIn(text) {
  const notes = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  return [...new Set(notes.map(({ program }) => program))].sort().map((program) => {
    const own = notes.filter((note) => note.program === program);
    const found = own.find(({ name }) => name !== undefined)?.name ?? "not found";
    const missed = own.filter(({ name }) => name === undefined).length;
    const tests = missed === 1 ? "1 test" : `${missed} tests`;
    return `${program}: ${found}${missed === 0 ? "" : `, ${tests} left out`}`;
  });
}

/** The names of the failed tests of a file, or the file when it could not be run. */
function failuresOf({ name, status, assertionResults }) {
  const file = relative(root, name).replace("/dist/", "/src/").replace(/\.js$/, ".ts");
  const failed = assertionResults.filter((test) => test.status === "failed");
  if (failed.length > 0) return failed.map((test) => `${file}: ${test.fullName}`);
  return status === "failed" ? [`${file}: could not be run`] : [];
}
