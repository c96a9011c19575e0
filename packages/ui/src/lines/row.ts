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

/** Fills a row with a line, of which no more is seen than some characters. */
export function fillRow(row: Row, line: Line | undefined, look: RowLook, chars: number): void {
  const { element, time, level, source, text } = row;
  if (line === undefined) {
    element.className = "row";
    time.textContent = "…";
    level.textContent = source.textContent = text.textContent = "";
    return;
  }
  element.className = `row l-${line.level}${look.dated ? " dated" : ""}${line.note ? " gap" : ""}`;
  const full = formatTime(line.ns, look.zone);
  setText(time, look.dated ? full.slice(5) : full.slice(11));
  setText(level, line.note ? "" : letters[line.level]);
  setText(source, line.stream.source);
  setParts(text, partsOf(line, look, chars));
}

/** A stretch of the text of a row with one look; a mark where it is what the query looks for. */
interface Part {
  readonly text: string;
  readonly className: string;
}

const markClass = "mark";

/** The text of a line: its message first where it has one, with needles marked and what is too long cut. */
function partsOf(line: Line, look: RowLook, chars: number): Part[] {
  const { message, fields, format } = parsedOf(line);
  if (look.raw || format === "text" || line.parsed.__line__ !== undefined) {
    return shown(line.text, look, "");
  }
  const parts = message === "" ? [] : shown(message, look, "");
  const { source } = line.stream;
  const kept = fields.filter(([name, value]) => !isShownElsewhere(name) && value !== source);
  const rank = (name: string) => look.order.get(name) ?? 500_000;
  const sorted = [...kept].sort((a, b) => rank(a[0]) - rank(b[0]));
  let seen = message.length;
  for (const [name, value] of sorted.slice(0, look.wrap ? 200 : 16)) {
    if (seen > chars) break;
    parts.push({ text: parts.length === 0 ? `${name}=` : `  ${name}=`, className: "k" });
    parts.push(...shown(value.length > 300 ? `${value.slice(0, 300)}…` : value, look, "kv"));
    seen += name.length + value.length;
  }
  return parts;
}

function shown(whole: string, look: RowLook, className: string): Part[] {
  const { first, more } = look.wrap ? { first: whole, more: 0 } : foldLines(whole);
  const cut = first.length > shownCharsMax;
  const text = cut ? first.slice(0, shownCharsMax) : first;
  const runs = isPlain(text) ? [{ text, className: "" }] : runsOf(text);
  const parts = runs.flatMap((run) =>
    marked(run.text, look.needles, `${className} ${run.className}`.trim()),
  );
  if (cut) parts.push({ text: `… ${sizeOf(whole.length)}, open`, className: "more" });
  if (more > 0) parts.push({ text: `  +${more} line${more === 1 ? "" : "s"}`, className: "k" });
  return parts;
}

function sizeOf(chars: number): string {
  return chars < 1024 ? `${chars} B` : `${Math.round(chars / 1024)} KB`;
}

function marked(text: string, needles: RegExp | undefined, className: string): Part[] {
  if (needles === undefined) return [{ text, className }];
  const parts: Part[] = [];
  let done = 0;
  for (const match of text.matchAll(needles)) {
    if (match[0] === "") continue;
    if (match.index > done) parts.push({ text: text.slice(done, match.index), className });
    parts.push({ text: match[0], className: markClass });
    done = match.index + match[0].length;
  }
  if (done < text.length) parts.push({ text: text.slice(done), className });
  return parts;
}

/** Gives an element these parts. Elements that it has are kept: lines of a list are much alike, and new elements take time. */
function setParts(host: HTMLElement, parts: readonly Part[]): void {
  let node = host.firstElementChild;
  for (const { text, className } of parts) {
    const name = className === markClass ? "MARK" : "SPAN";
    if (node === null || node.nodeName !== name) {
      const made = document.createElement(name);
      host.insertBefore(made, node);
      node = made;
    }
    if (name === "SPAN" && node.className !== className) node.className = className;
    setText(node, text);
    node = node.nextElementSibling;
  }
  while (node !== null) {
    const next: Element | null = node.nextElementSibling;
    node.remove();
    node = next;
  }
}

function setText(host: Element, text: string): void {
  const { firstChild } = host;
  if (!(firstChild instanceof Text)) host.textContent = text;
  else if (firstChild.data !== text) firstChild.data = text;
}

/** The order of fields for the lines on show. */
export function orderFor(lines: readonly Line[], named: readonly string[]): RowLook["order"] {
  return fieldOrder(lines.slice(0, 200).map(parsedOf), named);
}
