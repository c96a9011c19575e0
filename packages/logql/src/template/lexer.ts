import { escapedChars } from "@skald/model";
import { TemplateSyntaxError } from "./value.js";

/** A piece of a template: literal text, or a token inside an action. */
export interface TemplateToken {
  readonly kind:
    | "text"
    | "left"
    | "right"
    | "word"
    | "field"
    | "variable"
    | "dot"
    | "string"
    | "char"
    | "number"
    | "declare"
    | "assign"
    | "comma"
    | "pipe"
    | "open"
    | "close"
    | "space"
    | "end";
  readonly text: string;
  /** Offset in characters. */
  readonly at: number;
}

const tokenForms: readonly (readonly [TemplateToken["kind"], RegExp])[] = [
  ["space", /[ \t\r\n]+/y],
  ["string", /"(?:[^"\\\n]|\\.)*"|`[^`]*`/y],
  ["char", /'(?:[^'\\\n]|\\.)+'/y],
  [
    "number",
    /[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/y,
  ],
  ["field", /\.[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ["variable", /\$[\p{L}\p{Nd}_]*/uy],
  ["word", /[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ["dot", /\./y],
  ["declare", /:=/y],
  ["assign", /=/y],
  ["comma", /,/y],
  ["pipe", /\|/y],
  ["open", /\(/y],
  ["close", /\)/y],
];

/** Splits a template into tokens; trim markers and comments are already applied. Throws TemplateSyntaxError. */
export function lexTemplate(source: string): readonly TemplateToken[] {
  const tokens: TemplateToken[] = [];
  let at = 0;
  let trimNext = false;
  while (true) {
    const left = source.indexOf("{{", at);
    let text = left < 0 ? source.slice(at) : source.slice(at, left);
    if (trimNext) text = text.replace(/^[ \t\r\n]+/, "");
    const trimsBefore = left >= 0 && /^-[ \t\r\n]/.test(source.slice(left + 2, left + 4));
    if (trimsBefore) text = text.replace(/[ \t\r\n]+$/, "");
    if (text !== "") tokens.push({ kind: "text", text, at });
    if (left < 0) break;
    const inner = left + (trimsBefore ? 4 : 2);
    const action = source.startsWith("/*", inner)
      ? lexComment(source, inner)
      : lexAction(source, inner, tokens);
    trimNext = action.trims;
    at = action.end;
  }
  tokens.push({ kind: "end", text: "", at: source.length });
  return tokens;
}

interface ActionEnd {
  readonly end: number;
  readonly trims: boolean;
}

function lexComment(source: string, at: number): ActionEnd {
  const close = source.indexOf("*/", at);
  if (close < 0) throw new TemplateSyntaxError("unclosed comment", at);
  const right = /^(?:[ \t\r\n]-)?\}\}/.exec(source.slice(close + 2, close + 6));
  if (right === null) {
    throw new TemplateSyntaxError("comment ends before closing delimiter", close);
  }
  return { end: close + 2 + right[0].length, trims: right[0].length > 2 };
}

function lexAction(source: string, from: number, tokens: TemplateToken[]): ActionEnd {
  tokens.push({ kind: "left", text: "{{", at: from });
  let at = from;
  let depth = 0;
  while (true) {
    const trim = /^[ \t\r\n]+-\}\}/.exec(source.slice(at, at + 64));
    const right = trim?.[0] ?? (source.startsWith("}}", at) ? "}}" : undefined);
    if (right !== undefined) {
      if (depth > 0) throw new TemplateSyntaxError("unclosed left paren", at);
      tokens.push({ kind: "right", text: "}}", at });
      return { end: at + right.length, trims: trim !== null };
    }
    if (at >= source.length) throw new TemplateSyntaxError("unclosed action", at);
    const token = nextToken(source, at);
    if (token.kind === "open") depth++;
    if (token.kind === "close" && --depth < 0) {
      throw new TemplateSyntaxError("unexpected right paren", at);
    }
    tokens.push(token);
    at += token.text.length;
  }
}

function nextToken(source: string, at: number): TemplateToken {
  for (const [kind, form] of tokenForms) {
    form.lastIndex = at;
    const m = form.exec(source);
    if (m !== null) return { kind, text: m[0], at };
  }
  const c = String.fromCodePoint(source.codePointAt(at) as number);
  if (c === '"') throw new TemplateSyntaxError("unterminated quoted string", at);
  if (c === "`") throw new TemplateSyntaxError("unterminated raw quoted string", at);
  if (c === "'") throw new TemplateSyntaxError("unterminated character constant", at);
  if (c === ":") throw new TemplateSyntaxError("expected :=", at);
  const code = (c.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
  throw new TemplateSyntaxError(`unrecognized character in action: U+${code} '${c}'`, at);
}

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
