/** A line taken apart: its message and its other fields, in the order of the line. */
export interface ParsedLine {
  readonly format: "json" | "logfmt" | "text";
  readonly message: string;
  readonly fields: readonly (readonly [string, string])[];
}

/** Longer lines are shown as they are until someone opens them. */
export const shownCharsMax = 2048;

const messageKeys = ["msg", "message", "log", "event", "text", "body", "MESSAGE", "@message"];
const timePattern = /^(?:ts|time|timestamp|@timestamp|@t|datetime|date|t)$/i;
const levelPattern = /^(?:level|lvl|severity|severity_text|loglevel|log_level|log\.level)$/i;
const fieldsMax = 5000;

/** Takes a JSON or logfmt line apart; every other line is its own message. */
export function parseLine(text: string): ParsedLine {
  const first = text.charCodeAt(0);
  if (first === 123) {
    const fields = parseJsonLine(text);
    if (fields !== undefined) return withMessage("json", fields, text);
  }
  const fields = parseLogfmt(text);
  if (fields !== undefined) return withMessage("logfmt", fields, text);
  return { format: "text", message: text, fields: [] };
}

function withMessage(
  format: "json" | "logfmt",
  fields: readonly (readonly [string, string])[],
  text: string,
): ParsedLine {
  const key = messageKeys.find((name) => fields.some(([one]) => one === name));
  if (key === undefined) return { format, message: fields.length === 0 ? text : "", fields };
  const message = fields.find(([name]) => name === key)?.[1] ?? "";
  return { format, message, fields: fields.filter(([name]) => name !== key) };
}

/** Whether a field repeats what the row shows beside the text. */
export function isShownElsewhere(name: string): boolean {
  return timePattern.test(name) || levelPattern.test(name);
}

/** The fields of a JSON object, those of inner objects with names joined by `_`; undefined for other texts. */
export function parseJsonLine(text: string): (readonly [string, string])[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  const fields: (readonly [string, string])[] = [];
  flatten(value as Record<string, unknown>, "", fields);
  return fields;
}

function flatten(
  object: Record<string, unknown>,
  prefix: string,
  into: (readonly [string, string])[],
): void {
  for (const [key, value] of Object.entries(object)) {
    if (into.length >= fieldsMax) return;
    const name = prefix + key;
    if (value === null || value === undefined) continue;
    if (typeof value === "object" && !Array.isArray(value)) {
      if (name.length < 200) flatten(value as Record<string, unknown>, `${name}_`, into);
    } else {
      into.push([name, typeof value === "string" ? value : JSON.stringify(value)]);
    }
  }
}

const pairPattern = /\s*([A-Za-z_][\w.\-/]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?=\s|$)/y;

/** The pairs of a line that is nothing but `key=value`; undefined for other texts. */
export function parseLogfmt(text: string): (readonly [string, string])[] | undefined {
  if (!/^\s*[A-Za-z_][\w.\-/]*=/.test(text)) return undefined;
  const fields: (readonly [string, string])[] = [];
  let at = 0;
  const end = text.trimEnd().length;
  while (at < end && fields.length < fieldsMax) {
    pairPattern.lastIndex = at;
    const match = pairPattern.exec(text);
    if (match === null) return undefined;
    const [, key = "", quoted, plain = ""] = match;
    fields.push([key, quoted === undefined ? plain : unescaped(quoted)]);
    at = pairPattern.lastIndex;
  }
  return fields.length > 1 ? fields : undefined;
}

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/g, (_, one) => escapes[one] ?? one) : text;
}

/**
 * Orders fields for a row: those that the query names, then those that differ between the lines on show, then the rest. Among
 * equals the ones that people look for come first.
 */
export function fieldOrder(
  lines: readonly ParsedLine[],
  named: readonly string[],
): ReadonlyMap<string, number> {
  const seen = new Map<string, { first: string; differs: boolean; at: number }>();
  for (const { fields } of lines) {
    for (const [name, value] of fields) {
      const known = seen.get(name);
      if (known === undefined) seen.set(name, { first: value, differs: false, at: seen.size });
      else if (known.first !== value) known.differs = true;
    }
  }
  const rank = (name: string): number => {
    if (named.includes(name)) return named.indexOf(name) - 1_000_000;
    const { differs, at } = seen.get(name) ?? { differs: false, at: 0 };
    return (differs ? 0 : 100_000) + importance(name) * 1000 + Math.min(at, 999);
  };
  return new Map([...seen.keys()].map((name) => [name, rank(name)]));
}

const wanted = [
  /(?:^|_)(?:status|code|status_code)$/,
  /(?:^|_)method$/,
  /(?:^|_)(?:path|url|uri|route)$/,
  /(?:^|_)(?:duration|latency|elapsed|took)(?:_\w+)?$/,
  /(?:^|_)(?:user|user_id|caller|component)$/,
];
const unwanted = /(?:trace|span|request)_?id$|stack|version|region/i;

function importance(name: string): number {
  const at = wanted.findIndex((pattern) => pattern.test(name));
  if (at >= 0) return at;
  return unwanted.test(name) ? 50 : 20;
}

/** A text of several lines: its first line, and how many follow. */
export function foldLines(text: string): { readonly first: string; readonly more: number } {
  const at = text.indexOf("\n");
  if (at < 0) return { first: text, more: 0 };
  const rest = text.slice(at + 1).trimEnd();
  return { first: text.slice(0, at), more: rest === "" ? 0 : rest.split("\n").length };
}
