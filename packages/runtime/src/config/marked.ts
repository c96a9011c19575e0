import { isDeepStrictEqual } from "node:util";
import type { LeafNode, Mark, SectionNode } from "./schema.js";

/** What is wrong with keys that were set though they have no effect, and what is only worth a warning. */
export interface MarkedFindings {
  readonly problems: string[];
  readonly warnings: string[];
}

/**
 * Looks for keys that change nothing among those that were set: one message per section and reason, which names them. A
 * value that holds all the same is none of them.
 */
export function findMarked(given: Iterable<readonly [LeafNode, unknown]>): MarkedFindings {
  const keysByHead = { unused: new Map<string, string[]>(), refused: new Map<string, string[]>() };
  for (const [{ path }, mark] of setInVain(given)) {
    const section = mark.section;
    const head = section === "" ? mark.why : `${section}: ${mark.why}`;
    const key = section === "" ? path : path.slice(section.length + 1);
    const keys = keysByHead[mark.kind].get(head) ?? [];
    if (!keys.includes(key)) keys.push(key);
    keysByHead[mark.kind].set(head, keys);
  }
  const texts = (heads: ReadonlyMap<string, string[]>) =>
    [...heads].map(([head, keys]) => `${head}: ${keys.join(", ")}`);
  return { problems: texts(keysByHead.refused), warnings: texts(keysByHead.unused) };
}

function* setInVain(given: Iterable<readonly [LeafNode, unknown]>): Generator<[LeafNode, Mark]> {
  for (const [leaf, value] of given) {
    const { mark, note, items } = leaf;
    if (mark !== undefined) {
      const isDefault = isDeepStrictEqual(value, note.defaultValue);
      if (!isDefault && note.holds?.(value) !== true) yield [leaf, mark];
    } else if (items !== undefined) {
      for (const item of Object.values(value as object)) yield* setInVain(itemValues(items, item));
    }
  }
}

function* itemValues(section: SectionNode, item: object): Generator<[LeafNode, unknown]> {
  for (const [key, value] of Object.entries(item)) {
    const child = section.children.get(key);
    if (child?.kind === "leaf") yield [child, value];
    else if (child !== undefined) yield* itemValues(child, value);
  }
}
