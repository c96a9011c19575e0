// Bundles the compiled packages and their dependencies, so that a start reads a few files instead of eleven hundred.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, join } from "node:path";

// Each entry keeps its path. Shared code is beside main.js, because thread-scripts.ts and load.ts resolve paths from there.
const entries = [
  "main.js",
  "worker.js",
  "patterns-worker.js",
  "bucket-worker.js",
  "syslog-worker.js",
  "query/query-worker.js",
];
// The program reads these files at run time; they are beside the code.
const assets = {
  "wasm/kernels.wasm": "packages/kernels/dist/wasm/kernels.wasm",
  "build/src/zstd.wasm": "packages/storage/node_modules/@bokuweb/zstd-wasm/dist/common/zstd.wasm",
  "proto/services.proto": "proto/services.proto",
  "proto/messages.proto": "proto/messages.proto",
  ...Object.fromEntries(
    [
      ["health/v1/health.proto", "grpc-health-check/proto"],
      ["grpc/reflection/v1/reflection.proto", "@grpc/reflection/build/proto"],
      ["grpc/reflection/v1alpha/reflection.proto", "@grpc/reflection/build/proto"],
    ].map(([file, name]) => [`proto/${file}`, `packages/rpc/node_modules/${name}/${file}`]),
  ),
};
// The WebSocket library uses these native helpers only when they are installed, and undici has a cache in SQLite, which is
// not used here and which Node 20 does not have.
const optional = ["bufferutil", "utf-8-validate", "node:sqlite"];
// CommonJS among the dependencies asks for Node's own modules by `require`, and for files by `__dirname`: the services of gRPC
// for their schemas two folders above it.
const banner = `import { createRequire as __createRequire } from "node:module";
const require = __createRequire(import.meta.url), __dirname = import.meta.dirname + "/build/src";`;

/** Bundles the program below `root` into packages/skald/bundle when it has changed; throws when something is missing. */
export function bundle(root) {
  const target = join(root, "packages/skald/bundle");
  const stamp = join(target, ".inputs.json");
  if (isFresh(root, stamp)) return;
  rmSync(target, { recursive: true, force: true });
  const { buildSync } = createRequire(join(root, "package.json"))("esbuild");
  const { metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: entries.map((entry) => `packages/skald/dist/${entry}`),
    outbase: "packages/skald/dist",
    outdir: target,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    alias: { "node:http": join(root, "scripts/bundled-http.mjs") },
    // The S3 SDK imports parts of itself late and by name, and only its ES modules have names.
    mainFields: ["module", "main"],
    // Names are not shortened; `node --enable-source-maps` shows the lines of the sources.
    sourcemap: "linked",
    sourcesContent: false,
    legalComments: "none",
    banner: { js: banner },
    metafile: true,
    logLevel: "warning",
  });
  checkComplete(root, metafile);
  checkOldNode(root, metafile);
  const files = { ...assets, ...interfaceFiles(root) };
  for (const [name, path] of Object.entries(files)) {
    mkdirSync(dirname(join(target, name)), { recursive: true });
    copyFileSync(join(root, path), join(target, name));
  }
  const inputs = Object.keys(metafile.inputs);
  writeFileSync(join(target, "LICENSES.txt"), licensesOf(root, inputs));
  const read = [...inputs, ...Object.values(files), "pnpm-lock.yaml", "scripts/bundle.mjs"];
  const times = Object.fromEntries(read.map((path) => [path, changedMs(root, path)]));
  writeFileSync(stamp, JSON.stringify(times));
}

/** The files of the web interface, beside the code as in its own package; see `packages/ui/build.mjs`. */
function interfaceFiles(root) {
  const folder = "packages/ui/dist";
  const { screens: _, ...files } = JSON.parse(readFileSync(join(root, folder, "manifest.json")));
  const names = Object.keys(files).flatMap((name) => [name, `${name}.br`, `${name}.gz`]);
  return Object.fromEntries(
    ["manifest.json", ...names].map((name) => [`ui/${name}`, `${folder}/${name}`]),
  );
}

/** Throws when the bundle imports a module that is not Node's, because the image has no others. */
function checkComplete(root, { inputs, outputs }) {
  const missing = Object.values(outputs)
    .flatMap(({ imports }) => imports)
    .filter(({ external, path }) => external && !isBuiltin(path) && !optional.includes(path))
    .map(({ path }) => path);
  const byName = Object.entries(inputs).flatMap(([from, { imports }]) =>
    imports
      .filter(({ kind, path }) => kind === "dynamic-import" && inputs[path]?.format === "cjs")
      .filter(({ original }) => !takesDefault(readFileSync(join(root, from), "utf8"), original))
      .map(({ original }) => `${original} in ${from}`),
  );
  if (missing.length + byName.length === 0) return;
  throw new Error(
    `missing: ${missing.join(", ")}; loaded late, but not by default: ${byName.join(", ")}`,
  );
}

/** Whether every late import of a CommonJS module takes its default: in a bundle such a module has no other name. */
function takesDefault(text, name) {
  const loads = text.split(`import("${name}")`).length - 1;
  const good = [
    `\\(await import\\("${name}"\\)\\)\\.default`,
    `\\{ default: \\w+ \\} = await import\\("${name}"\\)`,
  ];
  const found = good.flatMap((form) => text.match(new RegExp(form, "g")) ?? []);
  return loads > 0 && found.length === loads;
}

/** Throws when a module imports zstd by name: Node 20 has no zstd, and the program would not start. */
function checkOldNode(root, { outputs }) {
  const byName = /import\s*\{[^}]*\bzstd\w*[^}]*\}\s*from "(?:node:)?zlib"/;
  const found = Object.keys(outputs).filter(
    (path) => path.endsWith(".js") && byName.test(readFileSync(join(root, path), "utf8")),
  );
  if (found.length > 0) throw new Error(`zstd is imported by name: ${found.join(", ")}`);
}

/** The licences of the dependencies in the bundle. */
function licensesOf(root, inputs) {
  const folders = inputs.flatMap(
    (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
  );
  const texts = [...new Set(folders)].sort().map((folder) => {
    const at = join(root, folder);
    const { name, version, license } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
    const file = readdirSync(at).find((one) => /^licen[cs]e/i.test(one));
    const text = file === undefined ? "" : `\n${readFileSync(join(at, file), "utf8").trim()}\n`;
    return `${name} ${version}: ${license}\n${text}`;
  });
  return texts.join(`\n${"-".repeat(80)}\n`);
}

function isFresh(root, stamp) {
  if (!existsSync(stamp)) return false;
  const known = Object.entries(JSON.parse(readFileSync(stamp, "utf8")));
  return known.every(([path, ms]) => changedMs(root, path) === ms);
}

/** When a file was written, ms since 1970; null when it does not exist. */
function changedMs(root, path) {
  return statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? null;
}
