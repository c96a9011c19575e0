import { parseErrorDetail, parseQuery, tokenize } from "@skald/logql/syntax";

/** What is wrong with a query as it is typed. */
export type Problem =
  /** It ends too early, and the caret is there: nothing is wrong yet. */
  | { readonly kind: "unfinished"; readonly says: string }
  | {
      readonly kind: "wrong";
      /** The part that is underlined. */
      readonly start: number;
      readonly end: number;
      readonly column: number;
      readonly line: number;
      readonly says: string;
      readonly fix?: Fix;
    };

export interface Fix {
  readonly label: string;
  /** The text of the query with the fix in it. */
  readonly text: string;
}

/** The problem of a text; undefined when it parses, or is empty. */
export function problemOf(text: string, caret: number): Problem | undefined {
  if (text.trim() === "") return undefined;
  try {
    parseQuery(text);
    return undefined;
  } catch (error) {
    const detail = parseErrorDetail(error);
    if (detail === undefined) {
      const says = error instanceof Error ? error.message : String(error);
      return { kind: "wrong", start: 0, end: text.length, line: 1, column: 1, says };
    }
    const { reason, position, hint } = detail;
    const end = text.trimEnd().length;
    if (isAtEnd(reason, position.offset, end) && caret >= end) {
      return { kind: "unfinished", says: followsAfter(text) };
    }
    const token = tokenize(text).find((one) => one.start === position.offset);
    const suggestion = hint.split("\n")[2];
    const fix = suggestion === undefined ? undefined : fixOf(text, position.offset, suggestion);
    const isHint = suggestion !== undefined && !suggestion.startsWith("did you mean ");
    const says = isHint ? suggestion : plainWords(reason);
    return {
      kind: "wrong",
      start: position.offset,
      end: Math.max(position.offset + 1, token?.end ?? 0),
      line: position.line,
      column: position.column,
      says:
        suggestion === undefined || isHint || fix !== undefined ? says : `${says}; ${suggestion}`,
      ...(fix !== undefined && { fix }),
    };
  }
}

function isAtEnd(reason: string, offset: number, end: number): boolean {
  if (offset >= end) return true;
  return /not terminated|missing closing/.test(reason);
}

const wordsOf: Readonly<Record<string, string>> = {
  "syntax error: unexpected $end": "something is missing at the end",
  "syntax error: unexpected IDENTIFIER": "no such function or keyword",
};

/** A reason of the parser in plain words. */
export function plainWords(reason: string): string {
  const known = wordsOf[reason];
  if (known !== undefined) return known;
  if (reason.startsWith("syntax error: unexpected $end")) {
    const wanted = /expecting (.*)$/.exec(reason)?.[1];
    return `something is missing at the end${wanted === undefined ? "" : `: ${wanted}`}`;
  }
  return reason.replace(/^syntax error: /, "");
}

/** The button for a suggestion of the parser, where it can be applied. */
function fixOf(text: string, offset: number, suggestion: string): Fix | undefined {
  const tokens = tokenize(text);
  const word = /^did you mean (\w+)\?$/.exec(suggestion)?.[1];
  const at = tokens.findIndex(({ start }) => start === offset);
  if (word !== undefined) {
    const token = [tokens[at], tokens[at - 1]].find((one) => one?.type === "IDENTIFIER");
    if (token === undefined) return undefined;
    const label = `Did you mean ${word}?`;
    return { label, text: text.slice(0, token.start) + word + text.slice(token.end) };
  }
  if (text[offset] === "'") {
    const close = text.indexOf("'", offset + 1);
    if (close < 0) return undefined;
    const inside = text.slice(offset + 1, close).replaceAll('"', '\\"');
    const fixed = `${text.slice(0, offset)}"${inside}"${text.slice(close + 1)}`;
    return { label: "Use double quotes", text: fixed };
  }
  if (text[offset] === "&") {
    const length = text[offset + 1] === "&" ? 2 : 1;
    const fixed = `${text.slice(0, offset)}and${text.slice(offset + length)}`;
    return { label: "Write and", text: fixed };
  }
  return undefined;
}

/** What may follow a text that ends too early. */
function followsAfter(text: string): string {
  const tokens = tokenize(text);
  const last = tokens.at(-2);
  const open = tokens.filter(({ type }) => type === "{").length;
  const closed = tokens.filter(({ type }) => type === "}").length;
  switch (last?.type) {
    case "{":
      return "Goes on: a label, as in app";
    case "|":
      return "Goes on: a parser, a filter on a field, or a format";
    case "|=":
    case "|~":
    case "|>":
    case "!>":
      return "Goes on: a text in quotes";
    case "=":
    case "=~":
    case "!=":
    case "!~":
      return "Goes on: a value in quotes";
    case ",":
      return open > closed ? "Goes on: another label" : "Goes on: another part";
    case "error":
      return "Goes on: the rest, and its closing quote or bracket";
    case "IDENTIFIER":
      return open > closed ? 'Goes on: = and a value, as in ="web"' : "Goes on: the rest";
    case "STRING":
      return open > closed ? "Goes on: a comma, or }" : "Goes on: the rest";
    default:
      return open > closed ? "Goes on: labels, and }" : "Goes on: the rest of the expression";
  }
}
