import { scanNumber, scanRange } from "./lexer-number.js";
import { decodeString, findStringEnd } from "./lexer-string.js";
import { functionTypes, keywordTypes, type Operator, type Token, type TokenType } from "./token.js";

export interface TokenizeOptions {
  /** Yields comments as tokens too, for colouring. */
  readonly comments?: boolean;
}

/**
 * Splits a query into tokens; the last one is always `$end`. Never throws: a literal that cannot be read becomes an
 * `error` token that reaches to the end of the text.
 */
export function tokenize(text: string, options: TokenizeOptions = {}): Token[] {
  const tokens = new Lexer(text, options.comments === true).run();
  markFunctions(tokens);
  return tokens;
}

/** Some editors begin a text with it; elsewhere it is no blank. */
const byteOrderMark = 0xfeff;

class Lexer {
  readonly #text: string;
  readonly #keepComments: boolean;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  /** Offset at which the line would start if every code point of it took one code unit. */
  #lineStart = 0;

  constructor(text: string, keepComments: boolean) {
    this.#text = text;
    this.#keepComments = keepComments;
  }

  run(): Token[] {
    const text = this.#text;
    if (text.charCodeAt(0) === byteOrderMark) this.#at++;
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (code === 10) {
        this.#at++;
        this.#startLine(this.#at);
      } else if (code === 32 || code === 9 || code === 13) {
        this.#at++;
      } else if (!this.#comment(code)) {
        this.#token(code);
      }
    }
    this.#push("$end", "$end", text.length);
    return this.#tokens;
  }

  #token(code: number): void {
    if (isNameStart(code)) this.#name();
    else if (code === 34 || code === 96) this.#string(code);
    else if (code === 39) this.#char();
    else if (isDigit(code) || (code === 46 && isDigit(this.#text.charCodeAt(this.#at + 1)))) {
      this.#number();
    } else if (code === 91) this.#range();
    else if (code > 127) this.#wideName();
    else if (code !== 45 || !this.#flagOrNegative()) this.#operator();
  }

  #push(type: TokenType, value: Token["value"], end: number): void {
    const start = this.#at;
    const column = start - this.#lineStart + 1;
    this.#tokens.push({ type, value, start, end, line: this.#line, column });
    this.#at = end;
  }

  #startLine(offset: number): void {
    this.#line++;
    this.#lineStart = offset;
  }

  /** Counts the lines and the two-unit code points of a token that has just been pushed. */
  #countLines(start: number): void {
    for (let i = start; i < this.#at; i++) {
      const code = this.#text.charCodeAt(i);
      if (code === 10) this.#startLine(i + 1);
      else if (code >= 0xd800 && code < 0xdc00) this.#lineStart++;
    }
  }

  #fail(reason: string): void {
    this.#push("error", reason, this.#text.length);
  }

  /** Steps over a comment: `#` and `//` reach to the end of the line, and those of C may span lines. */
  #comment(code: number): boolean {
    const start = this.#at;
    const next = this.#text.charCodeAt(start + 1);
    const block = code === 47 && next === 42;
    if (code !== 35 && !block && (code !== 47 || next !== 47)) return false;
    const close = block ? this.#text.indexOf("*/", start + 2) + 2 : this.#text.indexOf("\n", start);
    if (block && close < 2) {
      this.#fail("comment not terminated");
      return true;
    }
    const end = close < 0 ? this.#text.length : close;
    if (this.#keepComments) this.#push("comment", this.#text.slice(start, end), end);
    this.#at = end;
    this.#countLines(start);
    return true;
  }

  #name(): void {
    const start = this.#at;
    const text = this.#text;
    let end = start + 1;
    while (end < text.length && isNamePart(text.charCodeAt(end))) end++;
    if (end < text.length && text.charCodeAt(end) > 127) {
      this.#wideName();
      return;
    }
    const name = text.slice(start, end);
    const keyword = keywordTypes.get(name) ?? keywordTypes.get(name.toLowerCase());
    if (keyword === undefined) this.#push("IDENTIFIER", name, end);
    else this.#push(keyword, keyword, end);
  }

  /** A name with letters beyond ASCII, or a character that starts nothing. */
  #wideName(): void {
    const start = this.#at;
    widePattern.lastIndex = start;
    const name = widePattern.exec(this.#text)?.[0];
    if (name === undefined) {
      const char = String.fromCodePoint(this.#text.codePointAt(start) as number);
      this.#push("unknown", char, start + char.length);
    } else {
      this.#push("IDENTIFIER", name, start + name.length);
    }
    this.#countLines(start);
  }

  #string(code: number): void {
    const start = this.#at;
    const end = findStringEnd(this.#text, start, code);
    const decoded =
      end < 0 ? { error: "literal not terminated" } : decodeString(this.#text, start, end);
    if (typeof decoded === "string") this.#push("STRING", decoded, end);
    else this.#fail(decoded.error);
    this.#countLines(start);
  }

  /** A character between single quotes is a token, though no query has a use for one; anything longer is an error. */
  #char(): void {
    const start = this.#at;
    const end = findStringEnd(this.#text, start, 39);
    if (end < 0) {
      this.#fail("literal not terminated");
    } else if (charPattern.test(this.#text.slice(start + 1, end - 1))) {
      this.#push("unknown", this.#text.slice(start, end), end);
    } else {
      this.#fail("invalid char literal");
    }
    this.#countLines(start);
  }

  #number(): void {
    const scanned = scanNumber(this.#text, this.#at);
    if ("error" in scanned) this.#fail(scanned.error);
    else this.#push(scanned.type, scanned.value, scanned.end);
  }

  #range(): void {
    const scanned = scanRange(this.#text, this.#at);
    if ("error" in scanned) this.#fail(scanned.error);
    else this.#push("RANGE", scanned.ns, scanned.end);
  }

  /** `--strict`, `--keep-empty` or a negative duration such as `-5m`; false for a plain minus sign. */
  #flagOrNegative(): boolean {
    flagPattern.lastIndex = this.#at;
    const flag = flagPattern.exec(this.#text)?.[0];
    if (flag !== undefined) {
      this.#push("FLAG", flag, this.#at + flag.length);
      return true;
    }
    const next = this.#text.charCodeAt(this.#at + 1);
    if (!isDigit(next) && next !== 46) return false;
    const scanned = scanNumber(this.#text, this.#at + 1);
    if ("error" in scanned || scanned.type !== "DURATION") return false;
    this.#push("DURATION", -(scanned.value as bigint), scanned.end);
    return true;
  }

  #operator(): void {
    const two = this.#text.slice(this.#at, this.#at + 2);
    const type = operators.get(two) ?? operators.get(two[0] as string);
    if (type === undefined) this.#push("unknown", two[0] as string, this.#at + 1);
    else this.#push(type, type, this.#at + type.length);
  }
}

const operators: ReadonlyMap<string, Operator> = new Map(
  (
    "{ } ( ) , . ] | |= |~ |> = == =~ != !~ !> > >= < <= + - * / % ^".split(
      " ",
    ) as readonly Operator[]
  ).map((operator) => [operator, operator]),
);
const widePattern = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const charPattern =
  /^(?:[^\\]|\\(?:[abfnrtv\\']|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{3}))$/u;
const flagPattern = /--(?:strict|keep-empty)(?![\w-])/y;

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isNameStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95;
}

function isNamePart(code: number): boolean {
  return isNameStart(code) || isDigit(code);
}

/** Turns names into function words where `(`, or `by (` or `without (`, follows. */
function markFunctions(tokens: Token[]): void {
  for (let i = tokens.length - 1; i >= 0; i--) {
    const token = tokens[i] as Token;
    if (token.type !== "IDENTIFIER") continue;
    const name = token.value as string;
    const word = functionTypes.get(name) ?? functionTypes.get(name.toLowerCase());
    if (word === undefined || !callFollows(tokens, i)) continue;
    tokens[i] = { ...token, type: word, value: word };
  }
}

function callFollows(tokens: readonly Token[], at: number): boolean {
  let next = skipComments(tokens, at + 1);
  const type = tokens[next]?.type;
  if (type === "by" || type === "without") next = skipComments(tokens, next + 1);
  return tokens[next]?.type === "(";
}

function skipComments(tokens: readonly Token[], at: number): number {
  let next = at;
  while (tokens[next]?.type === "comment") next++;
  return next;
}
