/** Quotes a text as the label grammar prints it: double quotes, Go escapes, printable characters as they are. */
export function quote(text: string): string {
  if (plain.test(text) || !needsEscape.test(text)) return `"${text}"`;
  let out = '"';
  for (const char of text) out += escapeOf(char);
  return `${out}"`;
}

// Most texts are this, and it takes half the time.
const plain = /^[ !#-[\]-~]*$/;
// Everything but printable characters other than the quote and the backslash.
const needsEscape = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/** What a letter behind a backslash stands for in quoted text. */
export const escapedChars: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  '"': '"',
};

const short = new Map(Object.entries(escapedChars).map(([letter, char]) => [char, `\\${letter}`]));

function escapeOf(char: string): string {
  const known = short.get(char);
  if (known !== undefined) return known;
  if (printable.test(char)) return char;
  const code = char.codePointAt(0) as number;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** FNV-1a, 32 bits, over UTF-8: the ring token of a stream is that of its tenant followed by its label text. */
export function fnv1a32(...texts: readonly string[]): number {
  let hash = fnvBasis;
  for (const text of texts) {
    const bytes = encoder.encode(text);
    hash = fnv1aBytes(bytes, 0, bytes.length, hash);
  }
  return hash >>> 0;
}

/** FNV-1a, 32 bits with a sign, of a range of bytes; goes on from `hash`. For tables mix the upper bits in. */
export function fnv1aBytes(
  bytes: Uint8Array,
  start: number,
  end: number,
  hash: number = fnvBasis,
): number {
  let h = hash;
  for (let i = start; i < end; i++) h = Math.imul(h ^ bytes[i]!, fnvPrime);
  return h;
}

const fnvBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;
const encoder = new TextEncoder();

const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** Bytes as text; each byte that is not UTF-8 is one U+FFFD, as Go shows it. */
export function decodeText(bytes: Uint8Array): string {
  const text = lenient.decode(bytes);
  return text.includes("\ufffd") ? decodeCharacters(bytes) : text;
}

function decodeCharacters(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] as number;
    const length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    try {
      text += strict.decode(bytes.subarray(at, at + length));
      at += length;
    } catch {
      text += "\ufffd";
      at++;
    }
  }
  return text;
}
