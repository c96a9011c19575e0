// Copies what the program needs at run time into a folder: `node deploy/docker/assemble.mjs FOLDER`, after a build. It starts
// at the program's package and follows declared dependencies, so tests, sources, benchmarks and build tools are left behind.
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = realpathSync(fileURLToPath(new URL("../..", import.meta.url)));
const [target] = process.argv.slice(2);
if (target === undefined) throw new Error("name the folder to write to");

const seen = new Set();
copyPackage(join(root, "packages", "skald"));
for (const file of ["package.json", "LICENSE"]) cpSync(join(root, file), join(target, file));

/** Copies a package where it is in the checkout, and all that it depends on. */
function copyPackage(folder) {
  if (seen.has(folder)) return;
  seen.add(folder);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const isOurs = manifest.name.startsWith("@skald/");
  copyFiles(folder, isOurs ? isForOurProgram : isForProgram);
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = manifest;
  for (const name of Object.keys({
    ...dependencies,
    ...optionalDependencies,
    ...peerDependencies,
  })) {
    const link = findDependency(folder, name);
    // An optional one for another system, or a peer that nobody has.
    if (link === undefined) continue;
    const real = realpathSync(link);
    copyPackage(real);
    copyLink(link, real);
  }
}

/** Where a package finds a dependency: in a folder of its own, or beside it as pnpm lays them. */
function findDependency(folder, name) {
  for (let at = folder; at.startsWith(root) && at !== root; at = dirname(at)) {
    const link = basename(at) === "node_modules" ? join(at, name) : join(at, "node_modules", name);
    if (existsSync(link)) return link;
  }
  return undefined;
}

function copyFiles(folder, isNeeded) {
  cpSync(folder, join(target, relative(root, folder)), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => isNeeded(relative(folder, path)),
  });
}

function copyLink(link, real) {
  const copy = join(target, relative(root, link));
  if (link === real || existsSync(copy)) return;
  mkdirSync(dirname(copy), { recursive: true });
  symlinkSync(relative(dirname(link), real), copy);
}

/** The compiled code and the kernels, without tests and types. */
function isForOurProgram(path) {
  if (path === "" || path === "package.json") return true;
  if (!/^dist(\/|$)/.test(path)) return false;
  return !/(^|\/)(testing|\.tsbuildinfo|\.compile-cache)(\/|$)|\.test\.js$|\.d\.ts(\.map)?$|\.suite\.js$/.test(
    path,
  );
}

/** All of a dependency but its own dependencies, which are looked up by name, tests, types and source maps. */
function isForProgram(path) {
  const isAside = /^(node_modules|tests?|__tests__|benchmarks?|docs|examples?)(\/|$)/.test(path);
  return !isAside && !/\.[cm]?ts$|\.map$|\.test\.[cm]?js$|(^|\/)dist-types(\/|$)/.test(path);
}
