import { invalidArgument, quote } from "@skald/model";

/** Fields of a request: more than anyone means, few enough to be read in some milliseconds. */
const maxFields = 131_072;
/** A field as it is sent: the longest query, with each of its bytes escaped, has 384 KiB. */
const maxFieldBytes = 512 * 1024;
const ampersand = 0x26;
const plus = 0x2b;
const equals = 0x3d;
const blank = 0x20;
const percent = 0x25;

/**
 * Reads the fields of a form body or a query string. Throws invalid_argument, before any is read, when there are more
 * than 131072, one is longer than 512 KiB, or one has a percent sign that begins no escape.
 */
export function parseForm(form: Buffer): URLSearchParams {
  let fields = 0;
  for (let from = 0; from <= form.length; ) {
    const found = form.indexOf(ampersand, from);
    const to = found < 0 ? form.length : found;
    if (to - from > maxFieldBytes) {
      throw invalidArgument(`input size too long: limit of a parameter is ${maxFieldBytes} bytes`);
    }
    if (++fields > maxFields) throw invalidArgument(`too many parameters: limit is ${maxFields}`);
    from = to + 1;
  }
  return new URLSearchParams(simplify(form, fields).toString());
}

/**
 * The same fields in a form that the parser reads in linear time: it is slow where there is a plus sign, which means a
 * blank, and takes time that grows with the square of the fields without an equals sign.
 */
function simplify(form: Buffer, fields: number): Buffer {
  const simple = Buffer.allocUnsafe(form.length + fields);
  let used = 0;
  for (let from = 0; from <= form.length; ) {
    const found = form.indexOf(ampersand, from);
    const to = found < 0 ? form.length : found;
    let hasEquals = to === from;
    for (let at = from; at < to; at++) {
      const byte = form[at] as number;
      if (byte === percent) checkEscape(form, at, to, hasEquals);
      else if (byte === equals) hasEquals = true;
      simple[used++] = byte === plus ? blank : byte;
    }
    if (!hasEquals) simple[used++] = equals;
    if (found >= 0) simple[used++] = ampersand;
    from = to + 1;
  }
  return simple.subarray(0, used);
}

function checkEscape(form: Buffer, at: number, to: number, isValue: boolean): void {
  if (at + 2 < to && isHexDigit(form[at + 1] as number) && isHexDigit(form[at + 2] as number))
    return;
  const text = form.toString("utf8", at, Math.min(at + 3, to));
  throw invalidArgument(`invalid URL escape ${quote(isValue ? text : text.replace(/=.*/s, ""))}`);
}

function isHexDigit(byte: number): boolean {
  const lower = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66);
}
