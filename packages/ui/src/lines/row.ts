import type { Level, Line } from "../api/lines.js";
import { formatTime, type Zone } from "../state/range.js";
import { isPlain, runsOf } from "./ansi.js";
import {
  fieldOrder,
  foldLines,
  isShownElsewhere,
  type ParsedLine,
  parseLine,
  shownCharsMax,
} from "./parse-line.js";

/** How rows are drawn; the same for all rows of a list. */
export interface RowLook {
  readonly zone: Zone;
  /** The day is shown, because the list spans several. */
  readonly dated: boolean;
  readonly raw: boolean;
  readonly wrap: boolean;
  readonly order: ReadonlyMap<string, number>;
  /** Texts of the query that are marked. */
  readonly needles: RegExp | undefined;
}

const letters: Readonly<Record<Level, string>> = {
  ...{ critical: "CRT", error: "ERR", warn: "WRN", info: "INF", debug: "DBG", unknown: "···" },
};

/** The elements of one row, which are filled again and again. */
export interface Row {
  readonly element: HTMLDivElement;
  readonly time: HTMLElement;
  readonly level: HTMLElement;
  readonly source: HTMLElement;
  readonly text: HTMLElement;
  index: number;
}

export function makeRow(): Row {
  const element = document.createElement("div");
  element.className = "row";
  element.setAttribute("role", "row");
  const make = (name: string) => {
    const cell = document.createElement("span");
    cell.className = name;
    cell.setAttribute("role", "gridcell");
    element.append(cell);
    return cell;
  };
  const [time, level, source, text] = [make("time"), make("level"), make("source"), make("text")];
  return { element, time, level, source, text, index: -1 };
}

const parsed = new WeakMap<Line, ParsedLine>();

/** A line taken apart, once. */
export function parsedOf(line: Line): ParsedLine {
  let found = parsed.get(line);
  if (found === undefined) {
    found =
      line.text.length > 64 * 1024
        ? { format: "text", message: line.text, fields: [] }
        : parseLine(line.text);
    parsed.set(line, found);
  }
  return found;
}

/** Fills a row with a line. */
export function fillRow(row: Row, line: Line | undefined, look: RowLook): void {
  const { element, time, level, source, text } = row;
  text.textContent = "";
  if (line === undefined) {
    element.className = "row";
    time.textContent = "…";
    level.textContent = source.textContent = "";
    return;
  }
  element.className = `row l-${line.level}${look.dated ? " dated" : ""}${line.note ? " gap" : ""}`;
  const full = formatTime(line.ns, look.zone);
  time.textContent = look.dated ? full.slice(5) : full.slice(11);
  level.textContent = line.note ? "" : letters[line.level];
  source.textContent = line.stream.source;
  for (const node of textNodes(line, look)) text.append(node);
}

/** The text of a line: its message first where it has one, with needles marked and what is too long cut. */
function textNodes(line: Line, look: RowLook): Node[] {
  const { message, fields, format } = parsedOf(line);
  if (look.raw || format === "text" || line.parsed.__line__ !== undefined) {
    return shown(line.text, look, "");
  }
  const nodes = message === "" ? [] : shown(message, look, "");
  const { source } = line.stream;
  const kept = fields.filter(([name, value]) => !isShownElsewhere(name) && value !== source);
  const rank = (name: string) => look.order.get(name) ?? 500_000;
  const sorted = [...kept].sort((a, b) => rank(a[0]) - rank(b[0]));
  for (const [name, value] of sorted.slice(0, look.wrap ? 200 : 16)) {
    nodes.push(part(nodes.length === 0 ? `${name}=` : `  ${name}=`, "k"));
    nodes.push(...shown(value.length > 300 ? `${value.slice(0, 300)}…` : value, look, "kv"));
  }
  return nodes;
}

function shown(whole: string, look: RowLook, className: string): Node[] {
  const { first, more } = look.wrap ? { first: whole, more: 0 } : foldLines(whole);
  const cut = first.length > shownCharsMax;
  const text = cut ? first.slice(0, shownCharsMax) : first;
  const runs = isPlain(text) ? [{ text, className: "" }] : runsOf(text);
  const nodes = runs.flatMap((run) =>
    marked(run.text, look.needles, `${className} ${run.className}`.trim()),
  );
  if (cut) nodes.push(part(`… ${sizeOf(whole.length)}, open`, "more"));
  if (more > 0) nodes.push(part(`  +${more} line${more === 1 ? "" : "s"}`, "k"));
  return nodes;
}

function sizeOf(chars: number): string {
  return chars < 1024 ? `${chars} B` : `${Math.round(chars / 1024)} KB`;
}

function marked(text: string, needles: RegExp | undefined, className: string): Node[] {
  if (needles === undefined) return [part(text, className)];
  const nodes: Node[] = [];
  let done = 0;
  for (const match of text.matchAll(needles)) {
    if (match[0] === "") continue;
    if (match.index > done) nodes.push(part(text.slice(done, match.index), className));
    const mark = document.createElement("mark");
    mark.textContent = match[0];
    nodes.push(mark);
    done = match.index + match[0].length;
  }
  if (done < text.length) nodes.push(part(text.slice(done), className));
  return nodes;
}

function part(text: string, className: string): Node {
  if (className === "") return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = className;
  span.textContent = text;
  return span;
}

/** The order of fields for the lines on show. */
export function orderFor(lines: readonly Line[], named: readonly string[]): RowLook["order"] {
  return fieldOrder(lines.slice(0, 200).map(parsedOf), named);
}
