import type { Matcher, SkaldError } from "@skald/model";
import { regexCost } from "./check.js";
import { nearestWord, parseError } from "./errors.js";
import { tokenize } from "./lexer.js";
import { displayName, functionWords, keywords, type Token, type TokenType } from "./token.js";

/** Walks the tokens of one query, and makes the errors of the place where it stands. */
export class Cursor {
  readonly source: string;
  /** Every selector read so far, with its opening brace. */
  readonly selectors: { readonly matchers: readonly Matcher[]; readonly token: Token }[] = [];
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;
  #regexCost = 0;
  #stages = 0;

  constructor(source: string) {
    this.source = source;
    this.#tokens = tokenize(source);
  }

  get token(): Token {
    return this.#tokens[this.#at] as Token;
  }

  /** The type of the token; a method, so that the compiler does not take it for unchanged after a step. */
  peek(): TokenType {
    return (this.#tokens[this.#at] as Token).type;
  }

  /** The type of the token after this one. */
  peekNext(): TokenType {
    return (this.#tokens[this.#at + 1] as Token | undefined)?.type ?? "$end";
  }

  advance(): Token {
    const token = this.#tokens[this.#at] as Token;
    if (token.type !== "$end") this.#at++;
    return token;
  }

  /** Steps over the token if it is of this type. */
  skip(type: TokenType): boolean {
    if (this.peek() !== type) return false;
    this.#at++;
    return true;
  }

  /** Takes a token of this type or throws; the error lists what else could have stood here. */
  expect(type: TokenType, ...alternatives: readonly TokenType[]): Token {
    if (this.peek() !== type) throw this.unexpected(type, ...alternatives);
    return this.advance();
  }

  /** Takes a token of this type; the error lists all that could have stood here. */
  expectOneOf(type: TokenType, expecting: readonly TokenType[]): Token {
    if (this.peek() !== type) throw this.unexpected(...expecting);
    return this.advance();
  }

  /** Takes the `)` of an expression; so much else could have stood here that the error lists nothing. */
  close(): void {
    if (!this.skip(")")) throw this.unexpected();
  }

  expectText(type: "IDENTIFIER" | "STRING", ...alternatives: readonly TokenType[]): string {
    return this.expect(type, ...alternatives).value as string;
  }

  /** Takes a NUMBER; Go's float parser refuses hexadecimal integers and what does not fit. */
  expectNumber(...alternatives: readonly TokenType[]): number {
    const token = this.expect("NUMBER", ...alternatives);
    const value = token.value as number;
    if (Number.isFinite(value)) return value;
    const literal = this.textOf(token);
    const why = Number.isNaN(value) ? "invalid syntax" : "value out of range";
    throw this.invalid(
      `unable to parse literal as a float: strconv.ParseFloat: parsing "${literal}": ${why}`,
      token,
    );
  }

  /** Counts a level of nesting until `leave`; throws when the query is nested too deeply to be walked. */
  enter(levelsMax = expressionLevelsMax): void {
    if (++this.#depth > levelsMax) throw tooDeep(this.source, this.token);
  }

  leave(): void {
    this.#depth--;
  }

  /** Counts stages of the query; throws when there are too many to be carried from thread to thread. */
  countStages(count: number): void {
    this.#stages += count;
    if (this.#stages <= stagesMax) return;
    throw this.invalid(`more than ${stagesMax} filters and stages; split the query up`, this.token);
  }

  /** Counts a regular expression of the query; throws before they cost too much to compile. */
  countRegex(pattern: string, token: Token): void {
    this.#regexCost += regexCost(pattern) + regexCostBase;
    if (this.#regexCost <= regexCostMax) return;
    throw this.invalid(
      "error parsing regexp: expression too large; use fewer or shorter expressions, " +
        "or smaller repetition counts",
      token,
    );
  }

  textOf(token: Token): string {
    return this.source.slice(token.start, token.end);
  }

  /** The error of a token that cannot stand here. */
  unexpected(...expecting: readonly TokenType[]): SkaldError {
    const token = this.token;
    const list = expecting.map(displayName).join(" or ");
    const reason =
      token.type === "error"
        ? (token.value as string)
        : `syntax error: unexpected ${displayName(token.type)}${list && `, expecting ${list}`}`;
    const { source } = this;
    const isRange = token.type === "error" && source[token.start] === "[";
    const shown = isRange || lineless.has(token.type) ? "lineless" : "full";
    return parseError(reason, {
      source,
      position: positionOf(token),
      shown: source === "" ? "none" : shown,
      suggestion: this.#suggestion(),
    });
  }

  /** The error of a construct that is well formed but not allowed; clients know these without a place. */
  invalid(reason: string, token: Token = this.token): SkaldError {
    return parseError(reason, { source: this.source, position: positionOf(token), shown: "none" });
  }

  #suggestion(): string | undefined {
    const token = this.token;
    const text = this.textOf(token);
    if (token.type === "unknown" || token.value === "invalid char literal") {
      return unknownHints[text[0] as string];
    }
    if (token.type === "unwrap") {
      return "unwrap stands in a range aggregation, as in sum_over_time({..} | unwrap x [5m])";
    }
    if (token.type === "error" && text.startsWith("[")) {
      return "a range is written without blanks and with whole numbers, as in [5m] or [1h30m]";
    }
    const previous = this.#tokens[this.#at - 1];
    for (const candidate of [token, previous]) {
      if (candidate?.type !== "IDENTIFIER") continue;
      const word = nearestWord(candidate.value as string, words);
      if (word !== undefined) return `did you mean ${word}?`;
    }
    return undefined;
  }
}

/** Parentheses, calls and operators inside each other; deeper queries are refused before the stack runs out. */
export const expressionLevelsMax = 500;

/** The same with the label filters inside, whose chains grow longer: `id="1" or id="2" or ...`. */
export const filterLevelsMax = 1500;

/** Stages of a whole query; a line filter with alternatives is one, or one for each where it is negative. */
const stagesMax = 1500;

/** All regular expressions of a query together, in instructions: more than the longest query without repetitions. */
const regexCostMax = 150_000;
const regexCostBase = 30;

export function tooDeep(source: string, token: Token): SkaldError {
  const limits = `${expressionLevelsMax} levels, ${filterLevelsMax} with label filters`;
  return parseError(`query nested too deeply, the limit is ${limits}; split it up`, {
    source,
    position: positionOf(token),
  });
}

const words: readonly string[] = [...keywords, ...functionWords];
const unknownHints: Readonly<Record<string, string>> = {
  "'": "strings are written in double quotes or back quotes",
  "&": "filters are joined by and",
  "!": "a comparison is one of = != =~ !~",
};

function positionOf(token: Token): { offset: number; line: number; column: number } {
  return { offset: token.start, line: token.line, column: token.column };
}

/** Errors at tokens of these types name line 0, as clients know them. */
const lineless: ReadonlySet<TokenType> = new Set<TokenType>([
  ...(["RANGE", "DURATION", "BYTES", "FLAG", "|=", "|~", "|>"] as const),
  ...(["==", "=~", "!=", "!~", "!>", ">=", "<="] as const),
]);
