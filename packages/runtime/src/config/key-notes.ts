import { isDeepStrictEqual } from "node:util";
import type { Settings } from "./settings.js";

/**
 * What there is to say about keys that do nothing. In patterns `*` stands for one key and `**` for any number of them;
 * a key of an item in a list is `list[].key`.
 */
export interface KeyNotes {
  /** Keys of the schema without effect: they are typed and checked, and warned of when they differ from the default. */
  readonly unused: readonly UnusedKeys[];
  /** Keys that are not in the schema: accepted with whatever they hold. */
  readonly retired: readonly RetiredKey[];
  /** Flags that are no longer there, by name without a dash. */
  readonly retiredFlags: Readonly<Record<string, string>>;
}

export interface UnusedKeys {
  /** Pattern of the section; empty for the top. */
  readonly section: string;
  /** Patterns of its keys, each with all below it; without this list the whole section. */
  readonly keys?: readonly string[];
  /** Why; `not used by this version` when left out. */
  readonly reason?: string;
}

export interface RetiredKey {
  readonly path: string;
  /** What took its place, or why it went. */
  readonly reason: string;
  /** A key below it that switches it on: there is no warning unless that is true. */
  readonly switch?: string;
}

/** One warning per section and reason, which names the keys that were set to something else than their default. */
export function warnOfUnused(settings: Settings, rows: readonly UnusedKeys[]): string[] {
  const patterns = rows.map((row) => ({ row, pattern: sectionPattern(row) }));
  const groups = new Map<string, string[]>();
  for (const [path, { value }] of settings.given()) {
    if (isDeepStrictEqual(value, settings.leaves.get(path)?.note.defaultValue)) continue;
    for (const { row, pattern } of patterns) {
      const match = pattern.exec(path);
      if (match === null) continue;
      const head = `${match[1] ? `${match[1]}: ` : ""}${row.reason ?? "not used by this version"}`;
      groups.set(head, [...(groups.get(head) ?? []), match[2] as string]);
      break;
    }
  }
  return [...groups].map(([head, keys]) => `${head}: ${keys.join(", ")}`);
}

/** The row of a key that the schema does not know and that is accepted all the same. */
export function retiredRow(path: string, rows: readonly RetiredKey[]): RetiredKey | undefined {
  return rows.find((row) => new RegExp(`^${toPattern(row.path)}$`).test(path));
}

/** Whether a key has no effect: for the page of docs. */
export function unusedReason(path: string, rows: readonly UnusedKeys[]): string | undefined {
  const row = rows.find((candidate) => sectionPattern(candidate).test(path));
  return row === undefined ? undefined : (row.reason ?? "not used by this version");
}

function sectionPattern(row: UnusedKeys): RegExp {
  const keys = row.keys === undefined ? ".+" : `(?:${row.keys.map(toPattern).join("|")})(?:\\..+)?`;
  const section = row.section === "" ? "()" : `(${toPattern(row.section)})\\.`;
  return new RegExp(`^${section}(${keys})$`);
}

function toPattern(pattern: string): string {
  return pattern
    .replace(/[[\]]/g, "\\$&")
    .split(".")
    .map((key) => (key === "**" ? "(?:[^.]+\\.)*" : `${key.replaceAll("*", "[^.]*")}\\.`))
    .join("")
    .replace(/\\\.$/, "");
}
