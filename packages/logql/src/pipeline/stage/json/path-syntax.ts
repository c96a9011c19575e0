import { invalidArgument } from "@skald/model";

/** Where a value stands: member names and array indexes from the outside in. */
export type JsonPath = readonly (string | number)[];

/**
 * Parses the path of `json label="a.b[0][\"key with blank\"]"`. Throws invalid_argument with the text
 * `cannot parse expression [...]: ...`.
 */
export function parseJsonPath(expression: string): JsonPath {
  const fail = (reason: string): never => {
    throw invalidArgument(`cannot parse expression [${expression}]: ${reason}`);
  };
  const path: (string | number)[] = [];
  let at = 0;
  while (at < expression.length) {
    const rest = expression.slice(at);
    const field = /^[A-Za-z_][A-Za-z0-9_]*/.exec(rest);
    if (field !== null) {
      if (path.length > 0 && expression[at - 1] !== ".") fail("syntax error: unexpected FIELD");
      path.push(field[0]);
      at += field[0].length;
    } else if (rest[0] === "[") {
      if (expression[at - 1] === ".") fail("syntax error: unexpected [, expecting FIELD");
      const bracket = /^\[[ \t]*(?:"((?:[^"\\]|\\.)*)"|(\d+))[ \t]*\]/.exec(rest);
      if (bracket === null) fail(bracketReason(rest));
      const [whole, name, index] = bracket as RegExpExecArray;
      path.push(name === undefined ? Number(index) : unquote(name));
      at += whole.length;
    } else if (rest[0] === ".") {
      if (path.length === 0 || expression[at - 1] === ".") fail("syntax error: unexpected .");
      at++;
    } else fail(`unexpected char ${[...rest][0]}`);
  }
  if (path.length === 0) fail("syntax error: unexpected $end, expecting FIELD or [");
  if (expression.endsWith(".")) fail("syntax error: unexpected $end, expecting FIELD");
  return path;
}

function bracketReason(rest: string): string {
  const inner = rest.slice(1).trimStart();
  if (inner === "") return "syntax error: unexpected $end, expecting STRING or INDEX";
  if (inner[0] === '"' || /^\d/.test(inner)) return "syntax error: unexpected $end, expecting ]";
  return `unexpected char ${[...inner][0]}`;
}

function unquote(text: string): string {
  return text.replace(/\\(.)/gs, "$1");
}
