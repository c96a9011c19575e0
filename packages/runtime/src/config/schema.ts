import type { z } from "zod";
import { type FieldNote, noteOf, sectionHelpOf } from "./note.js";

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
