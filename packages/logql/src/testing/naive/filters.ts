import { compileRegex } from "@skald/model";
import { type Parsed, parseByteSize, parseDurationText, parseGoFloat } from "../../go/numbers.js";
import { hasIpOf, parseIpRange } from "../../pipeline/row/ip.js";
import { errorLabel, stageErrors } from "../../pipeline/row/row-labels.js";
import { compileLabelMatch } from "../../pipeline/stage/label-filter.js";
import type { LabelFilter, LineFilterStage } from "../../syntax/ast.js";
import { type PatternPiece, parseMatchingPattern } from "../../syntax/check.js";
import type { State } from "./row-state.js";

export function lineFilter({ op, alternatives }: LineFilterStage, line: string): boolean {
  const found = alternatives.some(({ kind, value }) => {
    if (kind === "ip") return hasIpOf(parseIpRange(value), line);
    if (op === "|=" || op === "!=") return line.includes(value);
    if (op === "|~" || op === "!~") return compileRegex(value, { anchored: false }).test(line);
    return matchesPattern(parseMatchingPattern(value), line);
  });
  return found === op.startsWith("|");
}

/** Literals one behind the other, each at its first place, at least one byte in each gap, up to the end. */
function matchesPattern(pieces: readonly PatternPiece[], line: string): boolean {
  let at = 0;
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind === "capture") continue;
    const found = line.indexOf(piece.text, at);
    if (found === -1 || (i > 0 && found === at)) return false;
    at = found + piece.text.length;
  }
  return pieces.at(-1)?.kind === "capture" ? at < line.length : at === line.length;
}

export function labelFilter(filter: LabelFilter, state: State): boolean {
  switch (filter.kind) {
    case "and": {
      const left = labelFilter(filter.left, state);
      return labelFilter(filter.right, state) && left;
    }
    case "or":
      return labelFilter(filter.left, state) || labelFilter(filter.right, state);
    case "string": {
      const { name } = filter.matcher;
      const value = name === errorLabel ? state.error : (state.get(name) ?? "");
      return compileLabelMatch(filter.matcher)(value);
    }
    case "number":
      return compare(filter, state, parseGoFloat, filter.value);
    case "duration":
      return compare(filter, state, parseDurationText, Number(filter.value));
    case "bytes":
      return compare(filter, state, parseByteSize, filter.value);
    case "ip": {
      if (state.error !== "") return true;
      const value = state.get(filter.name);
      if (value === undefined) return false;
      return hasIpOf(parseIpRange(filter.value), value) === (filter.op === "==");
    }
  }
}

function compare(
  { name, op }: { readonly name: string; readonly op: string },
  state: State,
  parse: (text: string) => Parsed<number>,
  want: number,
): boolean {
  const text = state.get(name);
  if (text === undefined) return false;
  const parsed = parse(text);
  if ("error" in parsed) {
    if (state.error === "") state.fail(stageErrors.labelFilter, parsed.error);
    return true;
  }
  const got = parsed.value;
  if (op === "==") return got === want;
  if (op === "!=") return got !== want;
  if (op === ">") return got > want;
  if (op === ">=") return got >= want;
  return op === "<" ? got < want : got <= want;
}
