import { sanitizeLabelName, stageErrors } from "../../pipeline/row/row-labels.js";
import { parseJsonPath } from "../../pipeline/stage/json.js";
import type { Extraction } from "../../syntax/ast.js";
import type { PatternPiece } from "../../syntax/check.js";
import { eachMember, findPath, labelText, NaiveJsonError, type NaiveJsonValue } from "./json.js";
import type { State } from "./row-state.js";

class Dropped extends Error {}

/** False when the row is dropped. */
export function json(state: State, extract: (name: string, value: string) => boolean): boolean {
  const walk = (text: string, prefix: string) => {
    eachMember(text, (key, value) => {
      const name =
        prefix === "" ? sanitizeLabelName(key) : `${prefix}_${sanitizeLabelName(key, true)}`;
      if (value.type === "object") walk(value.raw, name);
      else if (value.type !== "null" && value.type !== "array" && name !== "") {
        if (!extract(name, labelText(value))) throw new Dropped();
      }
    });
  };
  try {
    guardJson(state, () => walk(state.line, ""));
  } catch (error) {
    if (error instanceof Dropped) return false;
    throw error;
  }
  return true;
}

function guardJson(state: State, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof NaiveJsonError)) throw error;
    state.fail(stageErrors.json, error.message);
  }
}

export function jsonPaths(extractions: readonly Extraction[], state: State): void {
  if (state.line === "") return;
  if (!/^[{["]/.test(state.line)) {
    state.fail(stageErrors.json);
    return;
  }
  const own = new Set<string>();
  for (const { label, path } of extractions) {
    const value = findPath(state.line, parseJsonPath(path));
    if (value instanceof NaiveJsonError) state.fail(stageErrors.json, value.message);
    else if (value !== undefined) {
      state.extract(label, value.type === "null" ? "" : labelText(value), !own.has(label));
      own.add(label);
    }
  }
  fillMissing(extractions, state);
}

function fillMissing(extractions: readonly Extraction[], state: State): void {
  for (const { label } of extractions) {
    if (state.get(label) === undefined) state.set("parsed", label, "");
  }
}

/** The last value of a key wins, and a key spelled like the label sets it too. */
export function logfmtKeys(
  extractions: readonly Extraction[],
  pairs: readonly (readonly [string, string])[],
  state: State,
): void {
  for (const [key, value] of pairs) {
    const name = sanitizeLabelName(key);
    for (const { label, path } of extractions) {
      if (name === path || name === label) state.extract(label, value, true);
    }
  }
  fillMissing(extractions, state);
}

export function pattern(pieces: readonly PatternPiece[], state: State): void {
  let rest = state.line;
  if (rest === "") return;
  let from = 0;
  const first = pieces[0];
  if (first?.kind === "literal") {
    if (!rest.startsWith(first.text)) return;
    rest = rest.slice(first.text.length);
    from = 1;
  }
  for (let i = from; i < pieces.length; i += 2) {
    const { name } = pieces[i] as PatternPiece & { kind: "capture" };
    const literal = pieces[i + 1] as (PatternPiece & { kind: "literal" }) | undefined;
    const end = literal === undefined ? -1 : rest.indexOf(literal.text);
    if (name !== "_") state.extract(name, end < 0 ? rest : rest.slice(0, end));
    if (end < 0) return;
    rest = rest.slice(end + (literal?.text.length ?? 0));
  }
}

export function unpack(state: State): void {
  if (state.line === "") return;
  if (!state.line.startsWith("{")) {
    state.fail(stageErrors.json, "expecting json object(6), but it is not");
    return;
  }
  guardJson(state, () => {
    const members: (readonly [string, NaiveJsonValue])[] = [];
    eachMember(state.line, (key, value) => members.push([key, value]));
    const texts = members.filter(([, value]) => value.type === "string");
    const entry = texts.findLast(([key]) => key === "_entry");
    if (entry === undefined) return;
    for (const [key, value] of texts) {
      const name = sanitizeLabelName(key);
      if (key !== "_entry" && name !== "") state.extract(name, labelText(value));
    }
    state.line = labelText(entry[1]);
  });
}
