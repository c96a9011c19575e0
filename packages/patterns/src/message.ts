const openBrace = 0x7b;
const quote = 0x22;
const backslash = 0x5c;
const blank = 0x20;

/** A part of a line: the bytes from .. to - 1. */
export interface LinePart {
  readonly from: number;
  readonly to: number;
  /** There is more of the line around it. */
  readonly isInner: boolean;
}

/** What of a line is its message: of a JSON object the text of the first of some fields, else all of it. Undefined: nothing. */
export function messageOf(line: Buffer, fields: readonly Buffer[]): LinePart | undefined {
  if (line[0] !== openBrace) return { from: 0, to: line.length, isInner: false };
  for (const field of fields) {
    const found = line.indexOf(field);
    if (found < 0) continue;
    let at = found + field.length;
    while (line[at] === blank) at++;
    if (line[at] !== quote) continue;
    const from = ++at;
    while (at < line.length && line[at] !== quote) at += line[at] === backslash ? 2 : 1;
    return { from, to: Math.min(at, line.length), isInner: true };
  }
  return undefined;
}

/** Names of fields as `messageOf` looks for them. */
export function fieldNeedles(names: readonly string[]): Buffer[] {
  return names.map((name) => Buffer.from(`${JSON.stringify(name)}:`));
}
