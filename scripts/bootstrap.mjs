// Makes a checkout runnable with only Node 20 and npm: fetches the runtime and the dependencies, and builds.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.mjs";
import { builtRuntime, home, packageName, root, runtimeVersion } from "./runtime.mjs";

/** The Node to run with: this one when it has zstd, else the pinned one from the npm registry. */
function findRuntime() {
  const found = builtRuntime();
  if (found !== undefined) return found;
  say(
    `node ${process.versions.node} has no zstd: fetching node ${runtimeVersion} into .runtime (once)`,
  );
  mkdirSync(home, { recursive: true });
  const args = [
    "install",
    "--prefix",
    home,
    "--no-save",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  const { status } = npm([...args, `${packageName}@${runtimeVersion}`]);
  const fetched = builtRuntime();
  if (status === 0 && fetched !== undefined) return fetched;
  say("could not fetch it: going on with WASM zstd, which is slower");
  return process.execPath;
}

/** Installs the dependencies with the pinned pnpm when the lockfile or Node has changed. */
function install(node) {
  const lock = readFileSync(join(root, "pnpm-lock.yaml"));
  const version = spawnSync(node, ["--version"]).stdout.toString();
  const want = createHash("sha256").update(lock).update(version).digest("hex");
  const stamp = join(root, "node_modules", ".skald-install");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === want) return;
  const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  say(`installing dependencies with ${packageManager}`);
  run("npx", npx(["--yes", packageManager, "install", "--frozen-lockfile"]));
  writeFileSync(stamp, want);
}

/** Compiles the kernels to WebAssembly and the packages to JavaScript, and bundles them; incremental. */
function build(node) {
  const compiled = existsSync(join(root, "packages", "skald", "bundle", "main.js"));
  if (!compiled) say("building");
  run("kernels", spawnSync(node, ["packages/kernels/build.mjs"], { cwd: root, stdio: "inherit" }));
  removeStaleOutputs();
  const tsc = ["node_modules/typescript/bin/tsc", "--build"];
  run("tsc", spawnSync(node, tsc, { cwd: root, stdio: "inherit" }));
  run("ui", spawnSync(node, ["packages/ui/build.mjs"], { cwd: root, stdio: "inherit" }));
  bundle(root);
}

/** Removes the outputs of sources that were moved or deleted, because Jest would still run tests among them. */
function removeStaleOutputs() {
  for (const name of readdirSync(join(root, "packages"))) {
    const dist = join(root, "packages", name, "dist");
    if (!existsSync(dist)) continue;
    for (const file of readdirSync(dist, { recursive: true })) {
      const [, stem] = /^(.*?)(?:\.js|\.d\.ts|\.d\.ts\.map)$/.exec(file) ?? [];
      const source = join(root, "packages", name, "src", `${stem}.ts`);
      if (stem === undefined || existsSync(source) || existsSync(`${source}x`)) continue;
      // The files of the web interface are no outputs of tsc; its build removes its own.
      if (/^assets[\\/]/.test(file)) continue;
      rmSync(join(dist, file));
    }
  }
}

/** Fetches the runtime, installs and builds; returns the Node to run with. */
export function bootstrap() {
  const node = findRuntime();
  install(node);
  build(node);
  return node;
}

function say(text) {
  console.error(`skald: ${text}`);
}

function run(what, result) {
  if (result.status === 0) return;
  say(`${what} failed`);
  process.exit(result.status ?? 1);
}

function npm(args) {
  const cli = process.env.npm_execpath ?? "";
  if (cli.endsWith("npm-cli.js"))
    return spawnSync(process.execPath, [cli, ...args], { cwd: root, stdio: "inherit" });
  return spawnSync("npm", args, {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
}

function npx(args) {
  // The settings of an outer `npm start` must not reach pnpm.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([key]) => !/^npm_(config|package|lifecycle)_/i.test(key)),
  );
  const keep = Object.entries(process.env).filter(([key]) =>
    /^npm_config_(registry|cache|https?_proxy|cafile)$/i.test(key),
  );
  return spawnSync("npx", args, {
    cwd: root,
    env: { ...env, ...Object.fromEntries(keep) },
    stdio: "inherit",
    shell: process.platform === "win32",
  });
}
