import { styleText } from "node:util";
import { formatTime, type Zone } from "../shell/times.js";
import { printable } from "./cells.js";
import type { Entry, LabelSet } from "./entries.js";

/** What a line says: a message, and the fields beside it. */
interface Parsed {
  readonly message: string | undefined;
  readonly fields: readonly (readonly [string, string])[];
}

const messageNames = ["msg", "message", "log", "event", "error", "err"];
const timeNames = new Set(["ts", "time", "timestamp", "@timestamp", "t", "date"]);
const levelNames = ["detected_level", "level", "severity", "lvl", "log.level"];
const sourceNames = ["service_name", "app", "job", "container", "filename"];
const sourceWidthMax = 24;

const levels: readonly (readonly [RegExp, string, "red" | "yellow" | "green" | "cyan" | "gray"])[] =
  [
    [/^(fatal|critical|crit|emerg|panic|alert)/i, "FTL", "red"],
    [/^err/i, "ERR", "red"],
    [/^warn/i, "WRN", "yellow"],
    [/^(info|notice)/i, "INF", "green"],
    [/^debug/i, "DBG", "cyan"],
    [/^trace/i, "TRC", "gray"],
  ];

/** Lines for people: time, level, source, message, then the fields. */
export class PrettyLines {
  readonly #zone: Zone;
  readonly #isColoured: boolean;
  /** The widest source so far, so that messages stay below each other. */
  #sourceWidth = 0;
  #day = "";

  constructor({ zone, isColoured }: { readonly zone: Zone; readonly isColoured: boolean }) {
    this.#zone = zone;
    this.#isColoured = isColoured;
  }

  format(entries: readonly Entry[]): string {
    for (const { labels } of entries)
      this.#sourceWidth = Math.max(this.#sourceWidth, sourceOf(labels).length);
    return entries.map((entry) => this.#line(entry)).join("");
  }

  #line({ ns, line, labels }: Entry): string {
    const time = formatTime(ns, this.#zone);
    const day = time.slice(0, 10);
    const head = day === this.#day ? "" : `${this.#paint("gray", `-- ${day}`)}\n`;
    this.#day = day;
    const clock = `${time.slice(11, 19)}.${(/\.(\d+)/.exec(time)?.[1] ?? "").padEnd(3, "0").slice(0, 3)}`;
    const { message, fields } = parseLine(line);
    const level = levelOf(labels, fields);
    const letters = level === undefined ? "   " : this.#paint(level[2], level[1]);
    const source = sourceOf(labels).padEnd(this.#sourceWidth);
    const rest = fields
      .filter(([name]) => !timeNames.has(name) && !levelNames.includes(name))
      .map(([name, value]) => this.#paint("gray", `${printable(name)}=`) + printable(value));
    const text = printable(message ?? (rest.length === 0 ? line : ""));
    const parts = [this.#paint("gray", clock), letters, source, [text, ...rest].join("  ").trim()];
    return `${head}${parts.filter((part) => part !== "").join(" ")}\n`;
  }

  #paint(colour: "red" | "yellow" | "green" | "cyan" | "gray", text: string): string {
    return this.#isColoured ? styleText(colour, text, { validateStream: false }) : text;
  }
}

function sourceOf(labels: LabelSet): string {
  const name = sourceNames.find((one) => labels[one] !== undefined);
  return name === undefined ? "" : printable(labels[name]!).slice(0, sourceWidthMax);
}

function levelOf(labels: LabelSet, fields: Parsed["fields"]) {
  const label = levelNames.map((name) => labels[name]).find((one) => one !== undefined);
  const text = label ?? fields.find(([name]) => levelNames.includes(name))?.[1];
  return text === undefined ? undefined : levels.find(([pattern]) => pattern.test(text));
}

/** The message and fields of a line of JSON or logfmt; any other line is all message. */
function parseLine(line: string): Parsed {
  const pairs = line.startsWith("{") ? jsonFields(line) : logfmtFields(line);
  if (pairs === undefined) return { message: line.trimEnd(), fields: [] };
  const name = messageNames.find((one) => pairs.some(([key]) => key === one));
  const message = pairs.find(([key]) => key === name)?.[1];
  return { message, fields: pairs.filter(([key]) => key !== name) };
}

function jsonFields(line: string): [string, string][] | undefined {
  try {
    const found = JSON.parse(line) as Record<string, unknown>;
    return Object.entries(found).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
  } catch {
    return undefined;
  }
}

/** The pairs of a line that is logfmt and nothing else. */
function logfmtFields(line: string): [string, string][] | undefined {
  const pair = /\s*([\w.@/-]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?=\s|$)/gy;
  const found: [string, string][] = [];
  let end = 0;
  for (const match of line.matchAll(pair)) {
    const [all, name = "", value = ""] = match;
    end = match.index + all.length;
    found.push([name, value.startsWith('"') ? unquote(value) : value]);
  }
  return found.length > 0 && line.slice(end).trim() === "" ? found : undefined;
}

function unquote(text: string): string {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(1, -1);
  }
}
