import { LRUCache } from "lru-cache";
import { type Labels, makeLabels } from "./labels.js";
import { escapedChars } from "./quote.js";

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
