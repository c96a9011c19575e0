import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { type FieldNote, noteOf, sectionHelpOf } from "./field.js";
import type { IgnoredSetting } from "./undeclared.js";

/** A value that somebody gave, and where. */
export interface Setting {
  readonly value: unknown;
  /** `loki.yaml:12:3` or `-server.http-listen-port`. */
  readonly origin: string;
}

/**
 * The values of one configuration by path (`server.http_listen_port`), in three layers: what the user set, what follows
 * from that, and the defaults.
 */
export class Settings {
  readonly root: SectionNode;
  readonly leaves: ReadonlyMap<string, LeafNode>;
  /** What the user set and has no effect. */
  readonly ignored: IgnoredSetting[] = [];
  readonly #given = new Map<string, Setting>();
  readonly #derived = new Map<string, unknown>();

  constructor(root: SectionNode) {
    this.root = root;
    this.leaves = new Map([...leavesOf(root)].map((leaf) => [leaf.path, leaf]));
  }

  give(path: string, setting: Setting): void {
    this.#leaf(path);
    this.#given.set(path, setting);
  }

  /** Whether the user set the key itself. */
  isGiven(path: string): boolean {
    return this.#given.has(path);
  }

  /** Whether the user set any key at or below the path. */
  isAnyGiven(path: string): boolean {
    for (const given of this.#given.keys())
      if (given === path || given.startsWith(`${path}.`)) return true;
    return false;
  }

  /** Whether the user set any key at or below the path to something else than its default. */
  isAnyChanged(path: string): boolean {
    for (const [given, { value }] of this.#given) {
      if (given !== path && !given.startsWith(`${path}.`)) continue;
      if (!isDeepStrictEqual(value, this.#leaf(given).note.defaultValue)) return true;
    }
    return false;
  }

  /** The settings of the user, in the order in which they were given. */
  given(): ReadonlyMap<string, Setting> {
    return this.#given;
  }

  get(path: string): unknown {
    const leaf = this.#leaf(path);
    const given = this.#given.get(path);
    if (given !== undefined) return given.value;
    return this.#derived.has(path) ? this.#derived.get(path) : leaf.note.defaultValue;
  }

  /** Replaces the default of a key; what the user set stays. */
  derive(path: string, value: unknown): void {
    this.#leaf(path);
    this.#derived.set(path, value);
  }

  /** Derives each key below `to` from the key of the same name below `from`, where that was given. */
  deriveBlock(from: string, to: string): void {
    for (const path of [...this.#given.keys()]) {
      if (!path.startsWith(`${from}.`)) continue;
      const target = to + path.slice(from.length);
      if (this.leaves.has(target)) this.derive(target, this.get(path));
    }
  }

  /** The whole as one object. */
  build(): Record<string, unknown> {
    return buildSection(this.root, (leaf) => this.get(leaf.path));
  }

  #leaf(path: string): LeafNode {
    const leaf = this.leaves.get(path);
    if (leaf === undefined) throw new Error(`no config key ${path}`);
    return leaf;
  }
}

/** The keys of a section, in the order of their declaration. */
export interface SectionNode {
  readonly kind: "section";
  /** Keys from the root, joined by dots; empty for the root. */
  readonly path: string;
  readonly help: string;
  readonly children: ReadonlyMap<string, SchemaNode>;
}

/** A key with a value. */
export interface LeafNode {
  readonly kind: "leaf";
  readonly path: string;
  readonly schema: z.ZodType;
  readonly note: FieldNote;
  /** The keys of an item, for lists of sections. */
  readonly items: SectionNode | undefined;
}

export type SchemaNode = SectionNode | LeafNode;

/** Reads a zod object of fields into the tree that the readers and printers walk. */
export function readSchema(schema: z.ZodObject, path = ""): SectionNode {
  const children = new Map<string, SchemaNode>();
  for (const [key, child] of Object.entries(schema.shape))
    children.set(key, readChild(child as z.ZodType, path === "" ? key : `${path}.${key}`));
  return { kind: "section", path, help: sectionHelpOf(schema), children };
}

function readChild(schema: z.ZodType, path: string): SchemaNode {
  const note = noteOf(schema);
  if (note === undefined) {
    if (schema.type !== "object") throw new Error(`config key ${path} is not declared by field.*`);
    return readSchema(schema as z.ZodObject, path);
  }
  const items = note.items === undefined ? undefined : readSchema(note.items, `${path}[]`);
  return { kind: "leaf", path, schema, note, items };
}

/** Every leaf of the tree, in order; the keys within lists of sections are not among them. */
export function* leavesOf(node: SchemaNode): Generator<LeafNode> {
  if (node.kind === "leaf") {
    yield node;
    return;
  }
  for (const child of node.children.values()) yield* leavesOf(child);
}

/** Builds the nested object of a section from one value per leaf. */
export function buildSection(
  node: SectionNode,
  read: (leaf: LeafNode) => unknown,
): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, child] of node.children)
    out[key] = child.kind === "leaf" ? read(child) : buildSection(child, read);
  return out;
}
