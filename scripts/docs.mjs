// Writes docs/config.md from the declarations of the configuration, and docs/http-api.md and docs/openapi.json from the routes
// of the API; with --check fails when one of them is stale.
import { readFileSync, writeFileSync } from "node:fs";
import {
  commandFlags,
  formatDefault,
  leavesOf,
  sectionsOf,
} from "../packages/runtime/dist/config.js";
import { defaultYaml } from "../packages/skald/dist/config/default-yaml.js";
import { configRoot } from "../packages/skald/dist/config/load-config.js";
import { wholeApi } from "../packages/skald/dist/index.js";
import { targets } from "../packages/skald/dist/wiring/targets.js";
import { endpointGroups } from "../packages/transport/dist/index.js";
import { apiPage, openApi } from "./api-docs.mjs";

/** What stands behind a key that changes nothing. */
const signs = { unused: "°", refused: "!" };

const api = wholeApi();
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const pages = {
  "config.md": writePage(),
  "http-api.md": apiPage(api, endpointGroups),
  "openapi.json": `${JSON.stringify(openApi(api, version), undefined, 2)}\n`,
};
for (const [name, text] of Object.entries(pages)) {
  const page = new URL(`../docs/${name}`, import.meta.url);
  if (!process.argv.includes("--check")) {
    writeFileSync(page, text);
  } else if (readOrEmpty(page) !== text) {
    console.error(`docs/${name} is stale: run node scripts/docs.mjs`);
    process.exit(1);
  }
}

function writePage() {
  const sections = [...configRoot.children].filter(([, child]) => child.kind === "section");
  const top = [...configRoot.children].filter(([, child]) => child.kind === "leaf");
  const known = new Map();
  return [
    "# Configuration",
    "",
    "Written by `node scripts/docs.mjs` from the declarations: do not edit.",
    "",
    ...introduction(),
    "## Top level",
    "",
    ...tableOf(top.map(([key, leaf]) => rowOf(key, leaf))),
    ...marksOf(top.map(([, leaf]) => leaf)),
    ...sections.flatMap(([key, section]) => [
      `## ${key}`,
      "",
      section.help,
      "",
      ...tableOf(rowsOf(section, "", known)),
      ...marksOf([section]),
    ]),
    ...endOfPage(),
  ].join("\n");
}

function introduction() {
  return [
    "A key is set in the YAML file that `-config.file` names, or by its flag, which wins. Flags take one dash or two, `-x=y` or",
    "`-x y`; a boolean flag needs no value; a flag of a list may be repeated. Durations are written `30s`, `1h30m`, `7d`; sizes",
    "`256KB`, `5MB`, `1GB` (powers of 1024) or bytes; lists as YAML lists or with commas. An unknown key or flag stops the start",
    "with its line and the nearest known one. Keys marked ° are read and checked but have no effect in this version: whoever sets",
    "one to a value that would matter is warned, also in the overrides of a tenant. Keys marked ! stop the start when they are set,",
    "because ignoring them would be unsafe.",
    "",
    "| Flag | Meaning |",
    "|---|---|",
    ...commandFlags.map(({ name, help }) => `| \`-${name}\` | ${help} |`),
    "",
    "`-target` accepts:",
    "",
    "| Target | Runs |",
    "|---|---|",
    ...Object.entries(targets).map(([name, { says }]) => `| \`${name}\` | ${says} |`),
    "",
    "Without `-config.file` this is the file:",
    "",
    "```yaml",
    defaultYaml.trim(),
    "```",
    "",
  ];
}

/** The keys of a section; a block that was listed before is one row that points there. */
function rowsOf(section, prefix, known) {
  return [...section.children].flatMap(([key, child]) => {
    const path = prefix + key;
    if (child.kind === "leaf") {
      const items = child.items === undefined ? [] : rowsOf(child.items, `${path}[].`, known);
      return [rowOf(path, child), ...items];
    }
    const before = seenBefore(child, known);
    if (before === undefined) return rowsOf(child, `${path}.`, known);
    const flags = [...leavesOf(child)].map((leaf) => leaf.note.flag).filter(Boolean);
    const shown = flags.length === 0 ? "" : `\`-${commonStart(flags)}...\``;
    return [[`\`${path}\``, "section", "", shown, `as \`${before}\``]];
  });
}

/** Where a block with the same keys was listed; small ones are listed again. */
function seenBefore(section, known) {
  const leaves = [...leavesOf(section)];
  if (leaves.length < 6) return undefined;
  const signature = JSON.stringify(
    leaves.map(({ path, note, mark }) => [
      mark === undefined,
      path.slice(section.path.length),
      note.type,
      note.help,
      note.defaultValue,
    ]),
  );
  const before = known.get(signature);
  if (before === undefined) known.set(signature, section.path);
  return before;
}

function rowOf(path, { note, mark }) {
  const value = note.secret ? "" : `\`${formatDefault(note.format(note.defaultValue))}\``;
  const flag = note.flag ? `\`-${note.flag}\`` : "";
  return [
    `\`${path}\`${mark === undefined ? "" : signs[mark.kind]}`,
    note.type,
    value,
    flag,
    note.help,
  ];
}

/** Why keys have no effect: one line per reason, which names them, or a block where the whole is marked. */
function marksOf(nodes) {
  const keysByReason = new Map();
  const walk = (node) => {
    const { mark, path } = node;
    const isLeaf = node.kind === "leaf";
    if (mark !== undefined && (isLeaf || mark.section === path)) {
      const reason = `${signs[mark.kind]} ${mark.why}:`;
      const isWhole = nodes.includes(node) && !isLeaf;
      const used = [...leavesOf(node)].filter((leaf) => leaf.mark === undefined);
      const but = used.map((leaf) => ` but \`${leaf.path.slice(path.length + 1)}\``).join("");
      const name = isWhole ? "all keys" : `\`${path.slice(path.indexOf(".") + 1)}\`${but}`;
      keysByReason.set(reason, [...(keysByReason.get(reason) ?? []), name]);
    } else if (isLeaf && node.items !== undefined) walk(node.items);
    else if (!isLeaf) for (const child of node.children.values()) walk(child);
  };
  for (const node of nodes) walk(node);
  const lines = [...keysByReason].map(([reason, keys]) => `- ${reason} ${keys.join(", ")}`);
  return lines.length === 0 ? [] : [...lines, ""];
}

function tableOf(rows) {
  const lines = rows.map(
    (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`,
  );
  return ["| Key | Type | Default | Flag | Meaning |", "|---|---|---|---|---|", ...lines, ""];
}

function endOfPage() {
  return [
    "## Keys that are no keys any more",
    "",
    "Keys and flags of older files, and of features that are not built: they are accepted with a warning. `*` stands for any part",
    "of a key, `…` for several sections.",
    "",
    "| Key | What to know |",
    "|---|---|",
    ...ignoredRows(),
    "",
  ];
}

/** Keys and flags that are accepted without being declared; a key of several sections is one row. */
function ignoredRows() {
  const paths = new Map();
  const flags = [];
  for (const { path, ignored, ignoredFlags } of sectionsOf(configRoot)) {
    for (const [key, what] of Object.entries(ignored)) {
      const why = typeof what === "string" ? what : what.why;
      const row = JSON.stringify([key, why]);
      paths.set(row, [...(paths.get(row) ?? []), path === "" ? key : `${path}.${key}`]);
    }
    for (const [flag, why] of Object.entries(ignoredFlags)) flags.push(`| \`-${flag}\` | ${why} |`);
  }
  const keys = [...paths].map(([row, found]) => {
    const [key, why] = JSON.parse(row);
    return `| \`${found.length === 1 ? found[0] : `….${key}`}\` | ${why} |`;
  });
  return [...keys, ...flags];
}

function commonStart(words) {
  let end = words[0].length;
  for (const word of words) while (!word.startsWith(words[0].slice(0, end))) end--;
  return words[0].slice(0, end);
}

function readOrEmpty(url) {
  try {
    return readFileSync(url, "utf8");
  } catch {
    return "";
  }
}
