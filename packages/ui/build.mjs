// Builds the web interface: hashed files in dist/assets, each with .br and .gz beside it, dist/index.html, and dist/manifest.json,
// from which a server answers. `--size` prints the sizes against the budget and fails above it; `--watch` builds on each change.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, context } from "esbuild";

const home = dirname(fileURLToPath(import.meta.url));
const dist = join(home, "dist");
const assets = join(dist, "assets");
const KB = 1024;
/** Most bytes, gzip: of the first load, of each further screen, and of all files. */
const budget = { first: 75 * KB, screen: 30 * KB, all: 200 * KB };
/** Loaded when nothing else is to be done, so it counts only among all files. */
const idle = "regex";
const types = { ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };

const mark =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><rect width="20" height="20" rx="5" fill="#7aa2ff"/><path d="M5 6.5h10M5 10h6M5 13.5h8" stroke="#0e1116" stroke-width="2" stroke-linecap="round"/></svg>';

/**
 * Gives the check of regular expressions, which is loaded later, a copy of the one file of the model that it needs: of a file
 * that both import, the first load would get all that either of them uses.
 */
const regexAlone = {
  name: "regex-alone",
  setup({ onResolve }) {
    onResolve({ filter: /^@skald\/model$/ }, ({ importer }) =>
      importer.endsWith(join("logql", "dist", "syntax", "regex.js"))
        ? { path: join(home, "..", "model", "dist", "regex.js"), suffix: "?alone" }
        : undefined,
    );
  },
};

/** Parts that are loaded on demand. */
const onDemand =
  /src.(?:(?:streams|alerts|system|welcome).(?:streams|alerts|system|welcome|sample)|explore.open-line|download.download|views.(?:(?:table|patterns|metric)-view|view-menu|counts-table)|chart.metric-chart)\.tsx?$|syntax.regex\.js$/;

/**
 * Lets each part on demand import all that the page has at once. Files that the same parts import go into one chunk, so the first
 * load is one chunk instead of one for each set of parts.
 */
const oneChunk = {
  name: "one-chunk",
  setup({ onLoad }) {
    onLoad({ filter: onDemand }, ({ path }) => ({
      contents: `import ${JSON.stringify(join(home, "src", "app.tsx"))};\n${readFileSync(path, "utf8")}`,
      loader: path.endsWith(".tsx") ? "tsx" : path.endsWith(".ts") ? "ts" : "js",
    }));
  },
};

const options = {
  absWorkingDir: home,
  entryPoints: [
    { in: "src/main.tsx", out: "app" },
    { in: "src/style/main.css", out: "app" },
  ],
  outdir: "dist/assets",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  metafile: true,
  legalComments: "none",
  logLevel: "warning",
  treeShaking: true,
  plugins: [regexAlone, oneChunk],
};

if (process.argv.includes("--watch")) {
  const watcher = await context({
    ...options,
    plugins: [
      regexAlone,
      oneChunk,
      { name: "pages", setup: (one) => one.onEnd(({ metafile }) => write(metafile)) },
    ],
  });
  await watcher.watch();
} else if (process.argv.includes("--size") || !isFresh()) {
  rmSync(assets, { recursive: true, force: true });
  const { metafile } = await build(options);
  const manifest = write(metafile);
  if (process.argv.includes("--size")) process.exitCode = report(manifest) ? 0 : 1;
}

/** Whether nothing that the last build read has changed since. */
function isFresh() {
  const manifest = statSync(join(dist, "manifest.json"), { throwIfNoEntry: false });
  if (manifest === undefined) return false;
  const inputs = [
    "src",
    "build.mjs",
    "../logql/dist/syntax",
    "../model/dist",
    "../../pnpm-lock.yaml",
  ];
  return inputs.every((input) => newestMs(join(home, input)) < manifest.mtimeMs);
}

function newestMs(path) {
  if (!statSync(path).isDirectory()) return statSync(path).mtimeMs;
  const times = readdirSync(path, { recursive: true }).map(
    (name) => statSync(join(path, name)).mtimeMs,
  );
  return Math.max(...times);
}

/** Writes the page, the compressed files and the manifest of a build. */
function write(metafile) {
  const outputs = Object.entries(metafile.outputs);
  const fileOf = (test) => outputs.find(test)?.[0];
  const script = fileOf(([, one]) => one.entryPoint === "src/main.tsx");
  const style = fileOf(([, one]) => one.entryPoint === "src/style/main.css");
  const first = staticImports(metafile, script);
  writeFileSync(join(dist, "index.html"), page(script, style, first.slice(1)));
  const manifest = { "index.html": describe("index.html", "text/html; charset=utf-8") };
  const kept = new Set();
  for (const [file] of outputs) {
    const name = basename(file);
    const type = types[name.slice(name.lastIndexOf("."))];
    if (type === undefined) continue;
    manifest[`assets/${name}`] = describe(`assets/${name}`, type);
    for (const end of ["", ".br", ".gz"]) kept.add(name + end);
  }
  for (const name of readdirSync(assets)) {
    if (!kept.has(name)) rmSync(join(assets, name));
  }
  manifest.screens = screensOf(metafile, script, [style, ...first]);
  writeFileSync(join(dist, "manifest.json"), `${JSON.stringify(manifest, undefined, 1)}\n`);
  return manifest;
}

function page(script, style, preloads) {
  const at = (file) => `assets/${basename(file)}`;
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="dark light">',
    "<title>Skald</title>",
    `<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(mark)}">`,
    `<link rel="stylesheet" href="${at(style)}">`,
    ...preloads.map((file) => `<link rel="modulepreload" href="${at(file)}">`),
    `<script type="module" src="${at(script)}"></script>`,
    "</head>",
    '<body><div id="app"></div><noscript>Skald needs JavaScript.</noscript></body>',
    "</html>",
    "",
  ].join("\n");
}

/** A file with its compressed forms, which are written beside it. */
function describe(file, type) {
  const bytes = readFileSync(join(dist, file));
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  mkdirSync(dirname(join(dist, file)), { recursive: true });
  writeFileSync(join(dist, `${file}.gz`), gzip);
  writeFileSync(join(dist, `${file}.br`), brotli);
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}"`;
  return { file, type, bytes: bytes.length, gzip: gzip.length, br: brotli.length, etag };
}

/** A file and all that it imports at once, the file first. */
function staticImports(metafile, file, found = []) {
  if (found.includes(file)) return found;
  found.push(file);
  for (const { path, kind } of metafile.outputs[file].imports) {
    if (kind === "import-statement") staticImports(metafile, path, found);
  }
  return found;
}

/** The files of the first load, and those that each part loaded on demand adds to it. */
function screensOf(metafile, script, first) {
  const names = (files) => files.map((file) => `assets/${basename(file)}`);
  const screens = { first: ["index.html", ...names(first)] };
  const demanded = new Set();
  const visit = (file) => {
    for (const { path, kind } of metafile.outputs[file].imports) {
      if (kind === "dynamic-import" && !demanded.has(path)) {
        demanded.add(path);
        staticImports(metafile, path).forEach(visit);
      }
    }
  };
  staticImports(metafile, script).forEach(visit);
  for (const file of demanded) {
    const name = basename(metafile.outputs[file].entryPoint ?? file).replace(/\.\w+$/, "");
    screens[name] = names(staticImports(metafile, file).filter((one) => !first.includes(one)));
  }
  return screens;
}

/** Prints the sizes against the budget; true when all are within it. */
function report({ screens, ...files }) {
  const sum = (names) => names.reduce((total, name) => total + files[name].gzip, 0);
  const limitOf = (name) => (name === "first" ? budget.first : budget.screen);
  const rows = Object.entries(screens).map(([name, list]) => [
    name === "first" ? "first load" : `then ${name}`,
    sum(list),
    name === idle ? budget.all : limitOf(name),
  ]);
  rows.push(["all", sum(Object.keys(files)), budget.all]);
  for (const [name, size, limit] of rows) {
    const state = size <= limit ? "ok" : "TOO LARGE";
    console.log(
      `${name.padEnd(24)} ${(size / KB).toFixed(1).padStart(6)} KB of ${limit / KB} KB  ${state}`,
    );
  }
  return rows.every(([, size, limit]) => size <= limit);
}
