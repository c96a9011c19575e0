import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  type YAMLMap,
} from "yaml";
import { parseYaml } from "./parse-yaml.js";
import { buildSection, type LeafNode, type SectionNode } from "./settings.js";
import { type IgnoredKeys, type IgnoredSetting, nearest } from "./undeclared.js";

export interface YamlOptions {
  /** The name of the file in messages. */
  readonly file: string;
  /** Unknown keys stop the start of the process, but not the reload of overrides. */
  readonly unknownKeys: "problem" | "warning";
  readonly ignored: IgnoredKeys;
  /** Paths of all known keys, to say where a misplaced one belongs. */
  readonly knownPaths: Iterable<string>;
  /** Called with the path of every key whose value cannot be read. */
  readonly onBroken?: (path: string) => void;
}

/** Takes the value of a key and its place, `file:line:column`. */
export type ValueSink = (leaf: LeafNode, value: unknown, origin: string) => void;

export interface Entry {
  readonly key: string;
  readonly keyNode: Node | null;
  readonly value: Node | null;
}

/** A value, in an object because it may be undefined. */
type Read = { readonly value: unknown } | undefined;

/** Reads a YAML text by a schema. Problems are fatal, warnings are not. */
export class YamlReader {
  readonly problems: string[];
  readonly warnings: string[] = [];
  /** Keys without effect that were set. */
  readonly ignored: IgnoredSetting[] = [];
  /** The map at the root; undefined if the text is empty or is not a map. */
  readonly root: YAMLMap | undefined;
  readonly #options: YamlOptions;
  readonly #lines = new LineCounter();
  readonly #document;

  constructor(text: string, options: YamlOptions) {
    this.#options = options;
    const { document, errors } = parseYaml(text, { merge: true, lines: this.#lines });
    this.#document = document;
    this.problems = errors.map(({ offset, message }) => {
      return `${this.#placeAt(offset)}: ${message.charAt(0).toLowerCase()}${message.slice(1)}`;
    });
    if (errors.length > 0) return;
    const contents = this.#resolve(document.contents);
    if (isMap(contents)) this.root = contents;
    else if (!isNull(contents))
      this.problems.push(`${options.file}: must hold a map of sections, not ${kindOf(contents)}`);
  }

  /** Gives the values of a map for the keys of a section; keys with problems are left out. */
  readSection(map: YAMLMap, section: SectionNode, sink: ValueSink): void {
    for (const entry of this.entries(map)) {
      const { key, keyNode, value } = entry;
      const child = section.children.get(key);
      if (child === undefined) {
        this.#reportUnknown(entry, section);
      } else if (value === null) {
        // A key without a value keeps its default: sections are often left empty.
      } else if (child.kind === "leaf") {
        const read = this.#readLeaf(value, child);
        if (read !== undefined) sink(child, read.value, this.place(keyNode));
      } else if (isMap(value)) {
        this.readSection(value, child, sink);
      } else {
        this.#reportBroken(value, child.path, `must be a section of keys, not ${kindOf(value)}`);
      }
    }
  }

  /** Keys and nodes of a map, with aliases and merge keys resolved. */
  entries(map: YAMLMap): Entry[] {
    const own: Entry[] = [];
    const merged: Entry[] = [];
    for (const pair of map.items as Pair<Node | null, Node | null>[]) {
      const key = isScalar(pair.key) ? scalarText(pair.key) : String(pair.key);
      const resolved = this.#resolve(pair.value);
      const value = isNull(resolved) ? null : resolved;
      if (key !== "<<") own.push({ key, keyNode: pair.key, value });
      else merged.push(...this.#mergedEntries(value));
    }
    const known = new Set(own.map((entry) => entry.key));
    return [...own, ...merged.filter((entry) => !known.has(entry.key))];
  }

  /** `file:line:column` */
  place(node: Node | null): string {
    return this.#placeAt(node?.range?.[0]);
  }

  #placeAt(offset: number | undefined): string {
    const { file } = this.#options;
    if (offset === undefined) return file;
    const { line, col } = this.#lines.linePos(offset);
    return `${file}:${line}:${col}`;
  }

  #mergedEntries(value: Node | null): Entry[] {
    if (isMap(value)) return this.entries(value);
    if (!isSeq(value)) return [];
    return value.items.flatMap((item) => {
      const map = this.#resolve(item as Node);
      return isMap(map) ? this.entries(map) : [];
    });
  }

  #resolve(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.#document) ?? null) : node;
  }

  #readLeaf(node: Node, leaf: LeafNode): Read {
    const { items, note, path } = leaf;
    if (items !== undefined) {
      if (!isSeq(node))
        return this.#reportBroken(node, path, `must be a list, not ${kindOf(node)}`);
      const before = this.problems.length;
      const value = node.items.map((item) => this.#readItem(item as Node, items));
      const problem = this.problems.length > before ? undefined : note.check?.(value as never);
      return problem === undefined ? { value } : this.#reportBroken(node, path, problem);
    }
    const raw = this.#rawValue(node, leaf);
    if (raw === undefined) return undefined;
    const result = leaf.schema.safeParse(raw.value);
    if (result.success) return { value: result.data };
    for (const issue of result.error.issues)
      this.#reportBroken(node, [path, ...issue.path.map(String)].join("."), issue.message);
    this.#options.onBroken?.(path);
    return undefined;
  }

  /** One item of a list of sections, with the defaults of the keys that it leaves out. */
  #readItem(node: Node | null, items: SectionNode): unknown {
    const values = new Map<string, unknown>();
    const item = this.#resolve(node);
    if (isMap(item))
      this.readSection(item, items, (leaf, value) => void values.set(leaf.path, value));
    else if (!isNull(item))
      this.#reportBroken(item, items.path, `must be a section of keys, not ${kindOf(item)}`);
    return buildSection(items, ({ path, note }) =>
      values.has(path) ? values.get(path) : note.defaultValue,
    );
  }

  /** The input of the leaf's zod schema: the text of a scalar, so that YAML and flags are read alike. */
  #rawValue(node: Node, { note: { kind, type }, path }: LeafNode): Read {
    if (kind === "data") return this.#plainValue(node, path);
    if (isScalar(node)) return { value: scalarText(node) };
    if (kind === "list" && isSeq(node)) {
      const items = node.items.map((item) => this.#resolve(item as Node));
      if (items.every((item) => isScalar(item))) return { value: items.map(scalarText) };
    }
    const article = /^[aeiou]/.test(type) ? "an" : "a";
    return this.#reportBroken(node, path, `must be ${article} ${type}, not ${kindOf(node)}`);
  }

  #plainValue(node: Node, path: string): Read {
    try {
      return { value: node.toJS(this.#document) };
    } catch (error) {
      return this.#reportBroken(node, path, (error as Error).message);
    }
  }

  #reportUnknown(entry: Entry, section: SectionNode): void {
    const { key, keyNode } = entry;
    const path = section.path === "" ? key : `${section.path}.${key}`;
    const why = this.#options.ignored.whyOf(path);
    if (why !== undefined) {
      this.#noteIgnored({ ...entry, key: path }, why);
      return;
    }
    const where = section.path === "" ? "at the top" : `in ${section.path}`;
    const hint = this.#suggest(key, section);
    const found = this.#options.unknownKeys === "problem" ? this.problems : this.warnings;
    found.push(`${this.place(keyNode)}: unknown key "${key}" ${where}${hint}`);
  }

  /** Notes a key without effect, or the keys in it. Aliases are not resolved: what they stand for may be very large. */
  #noteIgnored({ key, keyNode, value }: Entry, why: string): void {
    if (isMap(value)) {
      for (const pair of value.items as Pair<Node | null, Node | null>[]) {
        const path = `${key}.${scalarText(pair.key)}`;
        const entry = { key: path, keyNode: pair.key, value: pair.value };
        this.#noteIgnored(entry, this.#options.ignored.whyOf(path) ?? why);
      }
    } else if (!isNull(value)) {
      const read = this.#plainValue(value, key);
      if (read !== undefined)
        this.ignored.push({ key, value: read.value, place: this.place(keyNode), why });
    }
  }

  #suggest(key: string, section: SectionNode): string {
    const near = nearest(key, section.children.keys());
    if (near !== undefined) return `; did you mean "${near}"?`;
    for (const path of this.#options.knownPaths)
      if (path === key || path.endsWith(`.${key}`)) return `; there is "${path}"`;
    return "";
  }

  #reportBroken(node: Node, path: string, what: string): undefined {
    const text = isScalar(node) ? scalarText(node) : "";
    const hint = text.includes("${") ? "; -config.expand-env=true replaces ${...}" : "";
    this.problems.push(`${this.place(node)}: ${path}: ${what}${hint}`);
    this.#options.onBroken?.(path);
    return undefined;
  }
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
