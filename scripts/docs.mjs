// Writes docs/config.md from the declarations of the configuration; with --check fails when the page is stale.
import { readFileSync, writeFileSync } from "node:fs";
import {
  commandFlags,
  formatDefault,
  leavesOf,
  unusedReason,
} from "../packages/runtime/dist/config.js";
import { defaultYaml } from "../packages/skald/dist/config/default-yaml.js";
import { configRoot } from "../packages/skald/dist/config/load-config.js";
import { keyNotes } from "../packages/skald/dist/config/notes.js";
import { targets } from "../packages/skald/dist/wiring/targets.js";

const page = new URL("../docs/config.md", import.meta.url);
const text = writePage();
if (!process.argv.includes("--check")) {
  writeFileSync(page, text);
} else if (readOrEmpty(page) !== text) {
  console.error("docs/config.md is stale: run node scripts/docs.mjs");
  process.exit(1);
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
    ]),
    ...endOfPage(),
  ].join("\n");
}

function introduction() {
  return [
    "A key is set in the YAML file that `-config.file` names, or by its flag, which wins. Flags take one dash or two, `-x=y` or",
    "`-x y`; a boolean flag needs no value; a flag of a list may be repeated. Durations are written `30s`, `1h30m`, `7d`; sizes",
    "`256KB`, `5MB`, `1GB` (powers of 1024) or bytes; lists as YAML lists or with commas. An unknown key or flag stops the start",
    "with its line and the nearest known one. Keys marked ° are read and checked but have no effect in this version: they are",
    "warned of when set.",
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

function rowOf(path, { path: full, note }) {
  const mark = unusedReason(full.replaceAll("[]", ""), keyNotes.unused) === undefined ? "" : "°";
  const value = note.secret ? "" : `\`${formatDefault(note.format(note.defaultValue))}\``;
  return [`\`${path}\`${mark}`, note.type, value, note.flag ? `\`-${note.flag}\`` : "", note.help];
}

function tableOf(rows) {
  const lines = rows.map(
    (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`,
  );
  return ["| Key | Type | Default | Flag | Meaning |", "|---|---|---|---|---|", ...lines, ""];
}

function endOfPage() {
  const retired = keyNotes.retired.map(({ path, reason }) => `| \`${path}\` | ${reason} |`);
  const flags = Object.entries(keyNotes.retiredFlags).map(
    ([flag, reason]) => `| \`-${flag}\` | ${reason} |`,
  );
  return [
    "## Keys of older files",
    "",
    "They are accepted with a warning. `*` stands for any part of a key, `**` for any section.",
    "",
    "| Key | What to know |",
    "|---|---|",
    ...retired,
    ...flags,
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
