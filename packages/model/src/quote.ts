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
