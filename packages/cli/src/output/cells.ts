import stringWidth from "string-width";

/**
 * Rows with their columns aligned by what a terminal shows. Columns of numbers are right-aligned, except `ids`: an id such as
 * `85e81763` only looks like one.
 */
export function alignRows(
  names: readonly string[],
  rows: readonly (readonly string[])[],
  ids: readonly string[] = [],
): string {
  const widths = names.map((name, column) =>
    rows.reduce((most, row) => Math.max(most, stringWidth(row[column] ?? "")), stringWidth(name)),
  );
  const isNumber = names.map(
    (name, column) =>
      !ids.includes(name) &&
      rows.every((row) => /^-?[\d.,]+(e[+-]?\d+)?( [KMGT]?i?B)?$|^$/.test(row[column] ?? "")),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const gap = " ".repeat(widths[column]! - stringWidth(cell));
        return isNumber[column] ? gap + cell : cell + gap;
      })
      .join("  ")
      .trimEnd();
  return `${[names, ...rows].map(line).join("\n")}\n`;
}

/** Fields as a line of CSV (RFC 4180). */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map((one) => (/[",\r\n]/.test(one) ? `"${one.replaceAll('"', '""')}"` : one)).join(",")}\n`;
}

/** Pairs as a line of logfmt. */
export function logfmtLine(pairs: Iterable<readonly [string, string]>): string {
  const parts = [...pairs].map(([name, value]) =>
    /^[^\s"=\p{Cc}]+$/u.test(value) ? `${name}=${value}` : `${name}=${JSON.stringify(value)}`,
  );
  return `${parts.join(" ")}\n`;
}

/** JSON as Go writes it: characters that HTML has a meaning for are escaped. */
export function goJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, sortedKeys, indent).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function sortedKeys(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A text without characters that would move the cursor or change colours of a terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, (char) =>
    char === "\t" ? "  " : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
