import {
  type RangeOp,
  rangeFacts,
  rangeOps,
  type Stage,
  stageFacts,
  type VectorOp,
  vectorKinds,
  vectorOps,
} from "./ast.js";

/**
 * One token of a query. Offsets are UTF-16 code units of the text, `end` exclusive; line and column start at 1 and
 * a column is one code point.
 */
export interface Token {
  readonly type: TokenType;
  /**
   * STRING: decoded text; NUMBER: its value, NaN where Go's float parser refuses the literal; BYTES: bytes; DURATION
   * and RANGE: ns as bigint; IDENTIFIER: the name as written; error: the reason; else the token's text in lower case.
   */
  readonly value: string | number | bigint;
  readonly start: number;
  readonly end: number;
  readonly line: number;
  readonly column: number;
}

/** Stages that begin with a word of their own behind the pipe. */
export type StageWord = Exclude<Stage["kind"], "line_filter" | "label_filter">;

const stageWords = Object.keys(stageFacts).filter((kind) => !kind.endsWith("_filter"));

export const keywords = [
  ...words("by without bool on ignoring group_left group_right offset or and unless unwrap"),
  ...(stageWords as StageWord[]),
];
export type Keyword = (typeof keywords)[number];

/** Words that are names unless a `(`, or `by (` or `without (`, follows. */
export const functionWords = [
  ...rangeOps,
  ...vectorOps,
  ...words("bytes duration duration_seconds ip vector label_replace"),
];
export type FunctionWord = (typeof functionWords)[number];

export const operators = words("{ } ( ) , . ] | |= |~ |> = == =~ != !~ !> > >= < <= + - * / % ^");
export type Operator = (typeof operators)[number];

/** The words of a text as a list, and as a type. */
function words<Text extends string>(text: Text): Words<Text>[] {
  return text.split(" ") as Words<Text>[];
}

type Words<Text, Found = never> = Text extends `${infer Word} ${infer Rest}`
  ? Words<Rest, Found | Word>
  : Found | Text;

/**
 * A token's type is its own text for keywords, function words and operators. `unknown` is a character the language
 * has no use for, `error` a literal that cannot be read (always the last token but `$end`), `comment` appears only
 * when asked for.
 */
export type TokenType =
  | Keyword
  | FunctionWord
  | Operator
  | "IDENTIFIER"
  | "STRING"
  | "NUMBER"
  | "DURATION"
  | "BYTES"
  | "RANGE"
  | "FLAG"
  | "unknown"
  | "error"
  | "comment"
  | "$end";

export type TokenClass =
  | "name"
  | "keyword"
  | "function"
  | "string"
  | "number"
  | "operator"
  | "comment"
  | "error"
  | "end";

/** The class a token is coloured by. */
export function classOf(type: TokenType): TokenClass {
  switch (type) {
    case "IDENTIFIER":
      return "name";
    case "STRING":
      return "string";
    case "NUMBER":
    case "DURATION":
    case "BYTES":
    case "RANGE":
      return "number";
    case "FLAG":
      return "keyword";
    case "unknown":
    case "error":
      return "error";
    case "comment":
      return "comment";
    case "$end":
      return "end";
    default:
      if (keywordTypes.has(type)) return "keyword";
      return functionTypes.has(type) ? "function" : "operator";
  }
}

export const keywordTypes: ReadonlyMap<string, Keyword> = new Map(keywords.map((k) => [k, k]));
export const functionTypes: ReadonlyMap<string, FunctionWord> = new Map(
  functionWords.map((w) => [w, w]),
);

export function isRangeOp(type: TokenType): type is RangeOp {
  return Object.hasOwn(rangeFacts, type);
}

export function isVectorOp(type: TokenType): type is VectorOp {
  return Object.hasOwn(vectorKinds, type);
}

/** The name of a token type in `unexpected ...` and `expecting ...`. */
export function displayName(type: TokenType): string {
  if (type === "unknown") return "IDENTIFIER";
  if (type === "FLAG") return "FUNCTION_FLAG";
  if (type === "bytes" || type === "duration" || type === "duration_seconds") {
    return `${type.toUpperCase()}_CONV`;
  }
  const isCall = isRangeOp(type) || isVectorOp(type) || type === "vector";
  return isCall || type === "label_replace" ? type.toUpperCase() : type;
}
