import type { z } from "zod";
import { type FieldNote, type IgnoredSection, noteOf, sectionNoteOf } from "./note.js";

/** The keys of a section, in the order of their declaration. */
export interface SectionNode {
  readonly kind: "section";
  /** Keys from the root, joined by dots; empty for the root. */
  readonly path: string;
  readonly help: string;
  readonly children: ReadonlyMap<string, SchemaNode>;
  /** What there is to know of keys that are accepted without being declared. */
  readonly ignored: Readonly<Record<string, string | IgnoredSection>>;
  readonly ignoredFlags: Readonly<Record<string, string>>;
  /** Given when no key of the section has an effect. */
  readonly mark: Mark | undefined;
}

/** A key with a value. */
export interface LeafNode {
  readonly kind: "leaf";
  readonly path: string;
  readonly schema: z.ZodType;
  readonly note: FieldNote;
  /** The keys of an item, for lists and maps of sections. */
  readonly items: SectionNode | undefined;
  readonly mark: Mark | undefined;
}

export type SchemaNode = SectionNode | LeafNode;

/** A key that is read and checked, and changes nothing. */
export interface Mark {
  /** `refused`: a value stops the start; `unused`: it is worth a warning. */
  readonly kind: "unused" | "refused";
  readonly why: string;
  /** Path of the section that was marked, or that holds the marked key. */
  readonly section: string;
}

/** Reads a zod object of fields into the tree that the readers and printers walk. */
export function readSchema(schema: z.ZodObject, path = ""): SectionNode {
  return readSection(schema, path, undefined);
}

function readSection(schema: z.ZodObject, path: string, outer: Mark | undefined): SectionNode {
  const note = sectionNoteOf(schema);
  const mark = markOf(note, path) ?? (note.used === true ? undefined : outer);
  const children = new Map<string, SchemaNode>();
  for (const [key, child] of Object.entries(schema.shape)) {
    const childPath = path === "" ? key : `${path}.${key}`;
    children.set(key, readChild(child as z.ZodType, { path: childPath, section: path, mark }));
  }
  const { help, ignored = {}, ignoredFlags = {} } = note;
  return { kind: "section", path, help, children, ignored, ignoredFlags, mark };
}

function readChild(
  schema: z.ZodType,
  at: { path: string; section: string; mark: Mark | undefined },
): SchemaNode {
  const { path } = at;
  const note = noteOf(schema);
  if (note === undefined) {
    if (schema.type !== "object") throw new Error(`config key ${path} is not declared by field.*`);
    return readSection(schema as z.ZodObject, path, at.mark);
  }
  const mark = markOf(note, at.section) ?? (note.used === true ? undefined : at.mark);
  const items = note.items === undefined ? undefined : readSection(note.items, `${path}[]`, mark);
  return { kind: "leaf", path, schema, note, items, mark };
}

function markOf(
  { unused, refused }: Pick<FieldNote, "unused" | "refused">,
  section: string,
): Mark | undefined {
  if (refused !== undefined) return { kind: "refused", why: refused, section };
  return unused === undefined ? undefined : { kind: "unused", why: unused, section };
}

/** Every leaf of the tree, in order; the keys within lists of sections are not among them. */
export function* leavesOf(node: SchemaNode): Generator<LeafNode> {
  if (node.kind === "leaf") {
    yield node;
    return;
  }
  for (const child of node.children.values()) yield* leavesOf(child);
}

/** Every section of the tree from the outside in, those of items too. */
export function* sectionsOf(node: SchemaNode): Generator<SectionNode> {
  if (node.kind === "leaf") {
    if (node.items !== undefined) yield* sectionsOf(node.items);
    return;
  }
  yield node;
  for (const child of node.children.values()) yield* sectionsOf(child);
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
