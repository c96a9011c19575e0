import { LRUCache } from "lru-cache";
import { escapedChars, quote } from "./text.js";

/**
 * A label set: names sorted by code unit, values aligned with them, no name twice, no empty value.
 * Immutable; build one with `makeLabels`.
 */
export interface Labels {
  readonly names: readonly string[];
  readonly values: readonly string[];
}

export const emptyLabels: Labels = { names: [], values: [] };

/** Sorts the pairs by name and drops empty values; of a name given twice the last value wins. */
export function makeLabels(pairs: Iterable<readonly [string, string]>): Labels {
  const byName = new Map<string, string>();
  for (const [name, value] of pairs) byName.set(name, value);
  for (const [name, value] of byName) if (value === "") byName.delete(name);
  const sorted = [...byName.keys()].sort();
  const values = sorted.map((name) => byName.get(name) as string);
  return { names: sharedNames(sorted), values };
}

let lastNames: readonly string[] = [];

/** The names of the set before where they are the same: most sets that are made one after the other have equal names. */
function sharedNames(names: readonly string[]): readonly string[] {
  const isSame =
    names.length === lastNames.length && names.every((name, i) => name === lastNames[i]);
  // A copy takes no more memory than it needs.
  if (!isSame) lastNames = names.slice();
  return lastNames;
}

export function labelsFromObject(object: Readonly<Record<string, string>>): Labels {
  return makeLabels(Object.entries(object));
}

/** The value of a label; the empty string when it is absent. */
export function labelValue(labels: Labels, name: string): string {
  const at = labels.names.indexOf(name);
  return at < 0 ? "" : (labels.values[at] as string);
}

/** The canonical text `{a="b", c="d"}`: the identity of a stream within its tenant, and its sort key. */
export function formatLabels(labels: Labels): string {
  const { names, values } = labels;
  if (names.length === 0) return "{}";
  let text = `{${names[0]}=${quote(values[0] as string)}`;
  for (let i = 1; i < names.length; i++) text += `, ${names[i]}=${quote(values[i] as string)}`;
  return `${text}}`;
}

/** A text that only equal label sets have, for maps: it takes half the time of `formatLabels`, and half the memory. */
export function keyOfLabels({ names, values }: Labels): string {
  return JSON.stringify([names, values]);
}

/** The labels as an object without a prototype, so that `__proto__` is a name as others. */
export function labelsToObject(labels: Labels): Record<string, string> {
  const object: Record<string, string> = Object.create(null);
  for (let i = 0; i < labels.names.length; i++) {
    object[labels.names[i] as string] = labels.values[i] as string;
  }
  return object;
}

/** Orders label sets name by name and value by value, a shorter set before its extension. */
export function compareLabels(a: Labels, b: Labels): number {
  const shared = Math.min(a.names.length, b.names.length);
  for (let i = 0; i < shared; i++) {
    const byName = compareText(a.names[i] as string, b.names[i] as string);
    if (byName !== 0) return byName;
    const byValue = compareText(a.values[i] as string, b.values[i] as string);
    if (byValue !== 0) return byValue;
  }
  return a.names.length - b.names.length;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What remembered texts and their labels may take in a thread: about 100,000 of the usual length. */
const maxBytes = 64 * 1024 * 1024;
/** Objects and arrays of one; its characters are held twice, in the text and in the labels. */
const entryBytes = 400;
const cache = new LRUCache<string, Labels>({
  maxSize: maxBytes,
  sizeCalculation: (_labels, text) => entryBytes + 2 * text.length,
});

/** The labels of a canonical label text, as `formatLabels` printed it; cached, because texts come again and again. */
export function parseStreamText(text: string): Labels {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const labels = makeLabels(pairsOf(text));
  cache.set(text, labels);
  return labels;
}

function* pairsOf(text: string): Generator<[string, string]> {
  const pair = /([^={}," ]+)="((?:[^"\\]|\\.)*)"/gsu;
  for (const [, name = "", quoted = ""] of text.matchAll(pair)) yield [name, unquote(quoted)];
}

/** Undoes `quote`. */
function unquote(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(
    /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))/gsu,
    (_, x?: string, u?: string, long?: string, char?: string) => {
      const hex = x ?? u ?? long;
      return hex === undefined
        ? (escapedChars[char as string] ?? (char as string))
        : String.fromCodePoint(Number.parseInt(hex, 16));
    },
  );
}
