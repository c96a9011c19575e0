import { escapedChars } from "@skald/model";
import { TemplateSyntaxError } from "../value/error.js";
import type { TemplateToken } from "./lexer.js";

/** The value of a quoted or raw string. */
export function templateText(token: TemplateToken): string {
  if (token.text.startsWith("`")) return token.text.slice(1, -1);
  return token.text
    .slice(1, -1)
    .replace(
      /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/gu,
      (_, x?: string, u?: string, long?: string, octal?: string, c?: string) => {
        const hex = x ?? u ?? long;
        if (hex !== undefined)
          return String.fromCodePoint(Math.min(Number.parseInt(hex, 16), 0x10ffff));
        if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
        const plain = c === "'" ? c : escapedChars[c as string];
        if (plain === undefined) throw new TemplateSyntaxError("invalid syntax", token.at);
        return plain;
      },
    );
}

/** The value of a number: integers are bigint, floats number. */
export function templateNumber(token: TemplateToken): bigint | number {
  const text = token.text.replaceAll("_", "");
  const m = /^([+-]?)(0[xXbBoO][0-9a-fA-F]+|\d+)$/.exec(text);
  if (m !== null) {
    const digits = m[2] as string;
    const octal = /^0\d+$/.test(digits) ? `0o${digits.slice(1)}` : digits;
    try {
      const value = BigInt(octal);
      return BigInt.asIntN(64, m[1] === "-" ? -value : value);
    } catch {
      throw new TemplateSyntaxError(`bad number syntax: ${JSON.stringify(token.text)}`, token.at);
    }
  }
  const value = Number(text);
  if (Number.isNaN(value)) {
    throw new TemplateSyntaxError(`bad number syntax: ${JSON.stringify(token.text)}`, token.at);
  }
  return value;
}
