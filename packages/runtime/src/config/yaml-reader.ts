import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { parseYaml } from "./parse-yaml.js";
import { buildSection, type LeafNode, type SectionNode } from "./settings.js";
import type { IgnoredKeys, IgnoredSetting } from "./undeclared.js";
import { nearest } from "./undeclared.js";

/** What a YAML text says, and what is wrong with it. Problems are fatal, warnings are not. */
export interface YamlReader {
  readonly problems: string[];
  readonly warnings: string[];
  /** Keys without effect that were set. */
  readonly ignored: readonly IgnoredSetting[];
  /** The map at the root; undefined when the text is empty or is not a map. */
  readonly root: YAMLMap | undefined;
  /** Gives the values of a map for the keys of a section; problems are noted and such keys are left out. */
  readSection(map: YAMLMap, section: SectionNode, sink: ValueSink): void;
  /** Keys and nodes of a map, with aliases and merge keys resolved. */
  entries(map: YAMLMap): Entry[];
  /** `file:line:column` */
  place(node: Node | null): string;
}

export type ValueSink = (leaf: LeafNode, value: unknown, origin: string) => void;

export interface Entry {
  readonly key: string;
  readonly keyNode: Node | null;
  readonly value: Node | null;
}

export interface YamlOptions {
  /** As it shall be named in messages. */
  readonly file: string;
  /** Unknown keys stop the start of the process, but not the reload of overrides. */
  readonly unknownKeys: "problem" | "warning";
  readonly ignored: IgnoredKeys;
  /** Paths of all known keys, to tell where a misplaced one belongs. */
  readonly knownPaths: Iterable<string>;
  /** Told of every key that had a value which could not be read. */
  readonly onBroken?: (path: string) => void;
}

export function openYaml(text: string, options: YamlOptions): YamlReader {
  const counter = new LineCounter();
  const { document, errors } = parseYaml(text, { merge: true, lines: counter });
  const problems = errors.map(
    ({ offset, message }) => `${placeAt(options.file, counter, offset)}: ${lowerFirst(message)}`,
  );
  const context: Context = {
    ...options,
    ...{ document, counter, problems },
    ...{ warnings: [], found: [] },
  };
  const contents = resolve(context, document.contents);
  const isEmpty = contents === null || (isScalar(contents) && contents.value === null);
  if (problems.length === 0 && !isEmpty && !isMap(contents))
    problems.push(`${options.file}: must hold a map of sections, not ${kindOf(contents)}`);
  return {
    problems,
    warnings: context.warnings,
    ignored: context.found,
    root: problems.length === 0 && isMap(contents) ? contents : undefined,
    readSection: (map, section, sink) => readSection(context, map, section, sink),
    entries: (map) => entriesOf(context, map),
    place: (node) => placeOf(context, node),
  };
}

interface Context extends YamlOptions {
  readonly document: Document;
  readonly counter: LineCounter;
  readonly problems: string[];
  readonly warnings: string[];
  readonly found: IgnoredSetting[];
}

function readSection(context: Context, map: YAMLMap, section: SectionNode, sink: ValueSink): void {
  for (const { key, keyNode, value } of entriesOf(context, map)) {
    const child = section.children.get(key);
    if (child === undefined) {
      reportUnknown(context, { key, keyNode, value }, section);
    } else if (value === null) {
      // A key without a value keeps its default: sections are often left empty.
    } else if (child.kind === "leaf") {
      const read = readLeaf(context, value, child);
      if (read !== undefined) sink(child, read.value, placeOf(context, keyNode));
    } else if (isMap(value)) {
      readSection(context, value, child, sink);
    } else {
      reportBroken(context, value, child.path, `must be a section of keys, not ${kindOf(value)}`);
    }
  }
}

function readLeaf(context: Context, node: Node, leaf: LeafNode): { value: unknown } | undefined {
  if (leaf.items !== undefined) {
    if (isSeq(node)) return readItems(context, node, leaf, leaf.items);
    return reportBroken(context, node, leaf.path, `must be a list, not ${kindOf(node)}`);
  }
  const raw = rawValue(context, node, leaf);
  return raw === undefined ? undefined : parseLeaf(context, node, leaf, raw.value);
}

function readItems(
  context: Context,
  list: YAMLSeq,
  { note, path }: LeafNode,
  section: SectionNode,
): { value: unknown } | undefined {
  const problems = context.problems.length;
  const value = list.items.map((item) => readItem(context, item as Node, section));
  const problem = context.problems.length > problems ? undefined : note.check?.(value as never);
  if (problem !== undefined) return reportBroken(context, list, path, problem);
  return { value };
}

/** One item of a list of sections, with the defaults of the keys that it leaves out. */
function readItem(context: Context, node: Node | null, items: SectionNode): unknown {
  const values = new Map<string, unknown>();
  const item = resolve(context, node);
  if (isMap(item))
    readSection(context, item, items, (leaf, value) => void values.set(leaf.path, value));
  else if (!isNull(item))
    reportBroken(context, item, items.path, `must be a section of keys, not ${kindOf(item)}`);
  return buildSection(items, (leaf) =>
    values.has(leaf.path) ? values.get(leaf.path) : leaf.note.defaultValue,
  );
}

/** What the zod schema of the leaf is given: the text of a scalar, so that YAML and flags are read alike. */
function rawValue(context: Context, node: Node, leaf: LeafNode): { value: unknown } | undefined {
  const { kind, type } = leaf.note;
  if (kind === "data") return plainValue(context, node, leaf.path);
  if (isScalar(node)) return { value: scalarText(node) };
  if (kind === "list" && isSeq(node)) {
    const items = node.items.map((item) => resolve(context, item as Node));
    if (items.every((item) => isScalar(item))) return { value: items.map(scalarText) };
  }
  const article = /^[aeiou]/.test(type) ? "an" : "a";
  return reportBroken(context, node, leaf.path, `must be ${article} ${type}, not ${kindOf(node)}`);
}

function plainValue(context: Context, node: Node, path: string): { value: unknown } | undefined {
  try {
    return { value: node.toJS(context.document) };
  } catch (error) {
    return reportBroken(context, node, path, (error as Error).message);
  }
}

function parseLeaf(
  context: Context,
  node: Node,
  leaf: LeafNode,
  raw: unknown,
): { value: unknown } | undefined {
  const result = leaf.schema.safeParse(raw);
  if (result.success) return { value: result.data };
  for (const issue of result.error.issues) {
    const path = [leaf.path, ...issue.path.map(String)].join(".");
    reportBroken(context, node, path, issue.message);
  }
  context.onBroken?.(leaf.path);
  return undefined;
}

function reportUnknown(
  context: Context,
  { key, keyNode, value }: Entry,
  section: SectionNode,
): void {
  const path = section.path === "" ? key : `${section.path}.${key}`;
  const place = placeOf(context, keyNode);
  const why = context.ignored.whyOf(path);
  if (why !== undefined) {
    noteIgnored(context, { key: path, keyNode, value }, why);
    return;
  }
  const where = section.path === "" ? "at the top" : `in ${section.path}`;
  const message = `${place}: unknown key "${key}" ${where}${suggest(context, key, section)}`;
  (context.unknownKeys === "problem" ? context.problems : context.warnings).push(message);
}

/** Notes a key without effect, or those in it. Aliases stay as they are: what they stand for may be as large as it likes. */
function noteIgnored(context: Context, { key, keyNode, value }: Entry, why: string): void {
  if (isMap(value)) {
    for (const pair of value.items as Pair<Node | null, Node | null>[]) {
      const path = `${key}.${scalarText(pair.key)}`;
      const entry = { key: path, keyNode: pair.key, value: pair.value };
      noteIgnored(context, entry, context.ignored.whyOf(path) ?? why);
    }
  } else if (!isNull(value)) {
    const read = plainValue(context, value, key);
    if (read === undefined) return;
    context.found.push({ key, value: read.value, place: placeOf(context, keyNode), why });
  }
}

function suggest(context: Context, key: string, section: SectionNode): string {
  const near = nearest(key, section.children.keys());
  if (near !== undefined) return `; did you mean "${near}"?`;
  for (const path of context.knownPaths)
    if (path === key || path.endsWith(`.${key}`)) return `; there is "${path}"`;
  return "";
}

function reportBroken(context: Context, node: Node, path: string, what: string): undefined {
  const text = isScalar(node) ? scalarText(node) : "";
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what a user writes in the file
  const hint = text.includes("${") ? "; -config.expand-env=true replaces ${...}" : "";
  context.problems.push(`${placeOf(context, node)}: ${path}: ${what}${hint}`);
  context.onBroken?.(path);
  return undefined;
}

function entriesOf(context: Context, map: YAMLMap): Entry[] {
  const own: Entry[] = [];
  const merged: Entry[] = [];
  for (const pair of map.items as Pair<Node | null, Node | null>[]) {
    const key = isScalar(pair.key) ? scalarText(pair.key) : String(pair.key);
    const resolved = resolve(context, pair.value);
    const value = isNull(resolved) ? null : resolved;
    if (key !== "<<") own.push({ key, keyNode: pair.key, value });
    else merged.push(...mergedEntries(context, value));
  }
  const known = new Set(own.map((entry) => entry.key));
  return [...own, ...merged.filter((entry) => !known.has(entry.key))];
}

function mergedEntries(context: Context, value: Node | null): Entry[] {
  if (isMap(value)) return entriesOf(context, value);
  if (!isSeq(value)) return [];
  return value.items.flatMap((item) => {
    const map = resolve(context, item as Node);
    return isMap(map) ? entriesOf(context, map) : [];
  });
}

function resolve(context: Context, node: Node | null): Node | null {
  return isAlias(node) ? (node.resolve(context.document) ?? null) : node;
}

function isNull(node: Node | null): node is null {
  return node === null || (isScalar(node) && node.value === null);
}

function scalarText(node: Node | null): string {
  if (!isScalar(node)) return "";
  return typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
}

function kindOf(node: Node | null): string {
  if (isMap(node)) return "a map";
  if (isSeq(node)) return "a list";
  return isScalar(node) ? `"${scalarText(node)}"` : "nothing";
}

function placeOf(context: Context, node: Node | null): string {
  return placeAt(context.file, context.counter, node?.range?.[0]);
}

function placeAt(file: string, counter: LineCounter, offset: number | undefined): string {
  if (offset === undefined) return file;
  const { line, col } = counter.linePos(offset);
  return `${file}:${line}:${col}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
