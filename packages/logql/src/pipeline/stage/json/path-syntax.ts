import { invalidArgument } from "@skald/model";

/** Where a value stands: member names and array indexes from the outside in. */
export type JsonPath = readonly (string | number)[];

interface Token {
  readonly kind: "FIELD" | "STRING" | "INDEX" | "." | "[" | "]" | "$end";
  readonly text: string;
}

/**
 * Parses the path of `json label="a.b[0][\"key with blank\"]"`; blanks may stand between its parts. Throws
 * invalid_argument with the text `cannot parse expression [...]: ...`.
 */
export function parseJsonPath(expression: string): JsonPath {
  const fail = (reason: string): never => {
    throw invalidArgument(`cannot parse expression [${expression}]: ${reason}`);
  };
  const tokens = tokenize(expression, fail);
  const expect = (at: number, ...kinds: Token["kind"][]): Token => {
    const token = tokens[at] as Token;
    if (kinds.includes(token.kind)) return token;
    return fail(`syntax error: unexpected ${token.kind}, expecting ${kinds.join(" or ")}`);
  };
  const path: (string | number)[] = [];
  for (let at = 0; tokens[at]?.kind !== "$end" || path.length === 0; ) {
    const { kind } = path.length === 0 ? expect(at, "FIELD", "[") : (tokens[at] as Token);
    if (kind === "[") {
      const key = expect(at + 1, "STRING", "INDEX");
      path.push(key.kind === "INDEX" ? Number(key.text) : key.text);
      expect(at + 2, "]");
      at += 3;
    } else if (path.length === 0) {
      path.push(expect(at, "FIELD").text);
      at++;
    } else if (kind === ".") {
      path.push(expect(at + 1, "FIELD").text);
      at += 2;
    } else fail(`syntax error: unexpected ${kind}`);
  }
  return path;
}

/** A text ends at the next quote or bracket, and has no escapes. */
const tokenAt =
  /[ \t\n]*(?:([A-Za-z_][A-Za-z0-9_]*)|"([^"\]]*)["\]]?|(\d+)(?=[ \t\n\]])|([.[\]]))/y;

function tokenize(expression: string, fail: (reason: string) => never): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  for (;;) {
    tokenAt.lastIndex = end;
    const m = tokenAt.exec(expression);
    if (m === null) break;
    end = tokenAt.lastIndex;
    const [, field, quoted, index, sign] = m;
    if (field !== undefined) tokens.push({ kind: "FIELD", text: field });
    else if (quoted !== undefined) tokens.push({ kind: "STRING", text: quoted });
    else if (index !== undefined) tokens.push({ kind: "INDEX", text: index });
    else tokens.push({ kind: sign as "." | "[" | "]", text: "" });
  }
  const rest = expression.slice(end).trimStart();
  const number = /^\d+(.?)/su.exec(rest);
  if (number?.[1] === ".") fail("cannot use float as array index");
  if (number !== null) fail(`non-integer value: ${number[1]}`);
  if (rest !== "") fail(`unexpected char ${[...rest][0]}`);
  return [...tokens, { kind: "$end", text: "" }];
}
