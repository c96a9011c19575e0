// Writes docs/config.md from the declarations of the settings, docs/http-api.md and docs/openapi.json from the routes of the
// API, and the nginx.conf of each gateway from its routes. With --check it fails when one of them is out of date.
import { readFileSync, writeFileSync } from "node:fs";
import { nginxFiles } from "../deploy/gateway/nginx.mjs";
import { routes } from "../deploy/gateway/routes.mjs";
import { commandFlags, formatDefault, leavesOf } from "../packages/runtime/dist/config.js";
import { ignoredKeys } from "../packages/skald/dist/config/ignored-keys.js";
import { configRoot, defaultYaml } from "../packages/skald/dist/config/load-config.js";
import { targets } from "../packages/skald/dist/config/targets.js";
import { wholeApi } from "../packages/skald/dist/index.js";
import { endpointGroups } from "../packages/transport/dist/index.js";
import { apiPage, openApi } from "./api-docs.mjs";

const api = wholeApi();
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const pages = {
  ...nginxFiles(),
  "docs/config.md": writePage(),
  "docs/http-api.md": apiPage(api, endpointGroups, routes),
  "docs/openapi.json": `${JSON.stringify(openApi(api, version), undefined, 2)}\n`,
};
for (const [name, text] of Object.entries(pages)) {
  const page = new URL(`../${name}`, import.meta.url);
  if (!process.argv.includes("--check")) {
    writeFileSync(page, text);
  } else if (readOrEmpty(page) !== text) {
    console.error(`${name} is stale: run node scripts/docs.mjs`);
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
    ...sections.flatMap(([key, section]) => [
      `## ${key}`,
      "",
      section.help,
      "",
      ...tableOf(rowsOf(section, "", known)),
      ...refusedOf(section),
    ]),
    ...endOfPage(),
  ].join("\n");
}

function introduction() {
  return [
    "A key is set in the YAML file that `-config.file` names, or by its flag, which wins. Flags take one dash or two, `-x=y` or",
    "`-x y`; a boolean flag needs no value; a flag of a list may be repeated. Durations are written `30s`, `1h30m`, `7d`; sizes",
    "`256KB`, `5MB`, `1GB` (powers of 1024) or bytes; lists as YAML lists or with commas. An unknown key or flag stops the start",
    "with its line and the nearest known one. Keys of Loki that have no effect here are accepted with a warning, also in the overrides",
    "of a tenant: [the last section](#keys-without-effect) lists them. Keys marked ! stop the start with some value, because ignoring",
    "it would be unsafe.",
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

/** The keys of a section. A block that an earlier section lists is one row with a link. */
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

/** The section that lists a block with the same keys; undefined for small blocks, which are listed again. */
function seenBefore(section, known) {
  const leaves = [...leavesOf(section)];
  if (leaves.length < 6) return undefined;
  const signature = JSON.stringify(
    leaves.map(({ path, note }) => [
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

function rowOf(path, { note }) {
  const value = note.secret ? "" : `\`${formatDefault(note.format(note.defaultValue))}\``;
  const flag = note.flag ? `\`-${note.flag}\`` : "";
  return [`\`${path}\`${note.refused === undefined ? "" : "!"}`, note.type, value, flag, note.help];
}

/** The values that stop the start, with the reasons. */
function refusedOf(section) {
  const refused = [...leavesOf(section)].filter(({ note }) => note.refused !== undefined);
  const lines = refused.map(({ path, note }) => {
    const { value, why } = note.refused;
    return `- ! \`${path.slice(section.path.length + 1)}: ${value}\`: ${why}`;
  });
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
    "## Keys without effect",
    "",
    "Keys of Loki, and flags, with a dash, that are accepted with whatever they hold, and change nothing. `*` stands for any text,",
    "`{a,b}` for one of several; `a.*` is the whole section `a`. Keys that the sections above list work, whatever this table says.",
    "",
    "| Why | Keys and flags |",
    "|---|---|",
    ...ignoredKeys.map(
      ({ why, keys }) => `| ${why} | ${keys.map((key) => `\`${key}\``).join(" ")} |`,
    ),
    "",
  ];
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
