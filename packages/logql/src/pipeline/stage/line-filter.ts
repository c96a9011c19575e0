import { compileRegex, invalidArgument } from "@skald/model";
import type { LineFilterStage, LineFilterValue } from "../../syntax/ast.js";
import { containsText, encodeText } from "../row/bytes.js";
import { compileIpScan, parseIpRange } from "../row/ip.js";
import type { LineSource } from "../row/line.js";
import { type PatternPiece, parseMatchingPattern } from "./pattern-syntax.js";
import type { PreparedStage } from "./row-state.js";

/** One of these texts is in every line that matches. */
export interface LineNeedles {
  readonly values: readonly Uint8Array[];
  /** The values are lower case; ASCII letters match in either case. */
  readonly ignoreCase: boolean;
  /** Containing one of them is enough. */
  readonly complete: boolean;
}

/** One alternative of a line filter. */
export interface LineTest {
  readonly needles?: LineNeedles;
  readonly test: (line: LineSource) => boolean;
}

export interface LineFilter {
  /** The operator begins with `!`: no alternative may match. */
  readonly negated: boolean;
  readonly tests: readonly LineTest[];
}

/** Compiles a line filter. Throws invalid_argument. */
export function compileLineFilter({ op, alternatives }: LineFilterStage): LineFilter {
  return {
    negated: op.startsWith("!"),
    tests: alternatives.map((value) => compileTest(op, value)),
  };
}

/** A line filter behind a stage that changed the line. */
export function prepareLineFilter(filter: LineFilter): PreparedStage {
  return ({ line }) => {
    const { tests, negated } = filter;
    return () => {
      for (const { test } of tests) if (test(line)) return !negated;
      return negated;
    };
  };
}

function compileTest(op: LineFilterStage["op"], { kind, value }: LineFilterValue): LineTest {
  if (kind === "ip") {
    if (op !== "|=" && op !== "!=") throw invalidArgument("ip: invalid operation");
    const hasIp = compileIpScan(parseIpRange(value));
    return { test: (line) => hasIp(line.bytes, line.start, line.end) };
  }
  switch (op) {
    case "|=":
    case "!=": {
      const text = encodeText(value);
      const needles = { values: [text], ignoreCase: false, complete: true };
      return {
        needles,
        test: (line) => containsText(line.bytes, line.start, line.end, text, false),
      };
    }
    case "|~":
    case "!~":
      return compileRegexTest(value);
    case "|>":
    case "!>":
      return compilePatternTest(parseMatchingPattern(value));
  }
}

function compileRegexTest(pattern: string): LineTest {
  const regex = compileRegex(pattern, { anchored: false });
  const { needles } = regex;
  if (needles === undefined) return { test: (line) => regex.test(line.text) };
  const values = needles.values.map(encodeText);
  const { ignoreCase, complete } = needles;
  const hasNeedle = ({ bytes, start, end }: LineSource) =>
    values.some((value) => containsText(bytes, start, end, value, ignoreCase));
  return {
    needles: { values, ignoreCase, complete },
    test: complete ? hasNeedle : (line) => hasNeedle(line) && regex.test(line.text),
  };
}

/** Literals found from left to right, up to the end of the line, at least one byte in each gap; no going back. */
function compilePatternTest(pieces: readonly PatternPiece[]): LineTest {
  const literals = pieces.flatMap((piece) => (piece.kind === "literal" ? [piece.text] : []));
  const longest = literals.reduce((a, b) => (b.length > a.length ? b : a), "");
  const test = ({ text }: LineSource) => matchesPattern(pieces, text);
  if (longest === "") return { test };
  return {
    needles: { values: [encodeText(longest)], ignoreCase: false, complete: false },
    test,
  };
}

function matchesPattern(pieces: readonly PatternPiece[], text: string): boolean {
  let at = 0;
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind === "capture") continue;
    const found = text.indexOf(piece.text, at);
    // a gap takes what stands before the first place of the literal, or nothing
    if (found < 0 || (i > 0 && found === at)) return false;
    at = found + piece.text.length;
  }
  return pieces.at(-1)?.kind === "capture" ? at < text.length : at === text.length;
}
