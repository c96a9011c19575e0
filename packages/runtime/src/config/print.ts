import { isDeepStrictEqual } from "node:util";
import { stringify } from "yaml";
import { type LeafNode, leavesOf, type SectionNode } from "./settings.js";

/** A built configuration: sections within sections. */
export type ConfigTree = Readonly<Record<string, unknown>>;

/** The configuration as YAML that can be read again, except that secrets are masked. */
export function formatConfig(section: SectionNode, config: ConfigTree): string {
  return formatYaml(printableConfig(section, config));
}

/** Printable values as YAML. */
export function formatYaml(values: unknown): string {
  return stringify(values, { lineWidth: 0 });
}

/** Only the keys whose values differ, as they are in `config`. */
export function pickChanged(
  section: SectionNode,
  config: ConfigTree,
  defaults: ConfigTree,
): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, child] of section.children) {
    const value = config[key];
    if (isDeepStrictEqual(value, defaults[key])) continue;
    const isSection = child.kind === "section";
    const before = defaults[key] as ConfigTree;
    out[key] = isSection ? pickChanged(child, value as ConfigTree, before) : value;
  }
  return out;
}

/** A text instead of a value that must not be seen. */
const masked = "********";

/** The same as plain data: durations and sizes as they are written, secrets masked. */
export function printableConfig(section: SectionNode, config: ConfigTree): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, child] of section.children) {
    const value = config[key];
    if (value === undefined) continue;
    out[key] =
      child.kind === "leaf" ? printLeaf(child, value) : printableConfig(child, value as ConfigTree);
  }
  return out;
}

function printLeaf(leaf: LeafNode, value: unknown): unknown {
  const { note, items } = leaf;
  if (note.secret) return value === "" ? "" : masked;
  if (items !== undefined)
    return (value as readonly ConfigTree[]).map((item) => printableConfig(items, item));
  return maskData(note.format(value));
}

/** Masks passwords in URLs, and whatever has a telling name in data that has no schema of its own. */
function maskData(value: unknown): unknown {
  if (typeof value === "string")
    return value.replace(/(:\/\/[^/?#\s:@]*:)[^/?#\s]+@/g, `$1${masked}@`);
  if (Array.isArray(value)) return value.map(maskData);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, inner]) => {
    const isSecret = secretName.test(key) && typeof inner === "string" && inner !== "";
    return [key, isSecret ? masked : maskData(inner)];
  });
  return Object.fromEntries(entries);
}

const secretName = /pass|secret|token|credential|authorization|(api|access)[-_]?key/i;

/** The configuration without anything set. */
export function defaultsOf(section: SectionNode): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, child] of section.children)
    out[key] = child.kind === "leaf" ? child.note.defaultValue : defaultsOf(child);
  return out;
}

/** `-help`: the command flags, then the flags of the keys by section. */
export function formatHelp(
  section: SectionNode,
  commands: readonly { readonly name: string; readonly help: string }[],
): string {
  const lines = commands.flatMap(({ name, help }) => [`  -${name}`, `        ${help}`]);
  for (const [key, child] of section.children) {
    const flagged = [...leavesOf(child)].filter((leaf) => leaf.note.flag !== undefined);
    if (flagged.length === 0) continue;
    if (child.kind === "section") lines.push("", `${key}: ${child.help}`);
    for (const leaf of flagged) lines.push(...helpLines(leaf));
  }
  return `${lines.join("\n")}\n`;
}

function helpLines({ path, note }: LeafNode): string[] {
  const value = formatDefault(note.format(note.defaultValue));
  return [`  -${note.flag} ${note.type}`, `        ${note.help} [${path}] (default ${value})`];
}

/** A default as it would be written on one line of YAML. */
export function formatDefault(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatDefault).join(", ")}]`;
  return value === "" ? '""' : typeof value === "string" ? value : JSON.stringify(value);
}
