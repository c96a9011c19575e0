/** What a command tells of a file: printed as text, or as JSON. */
export interface Document {
  readonly kind: string;
  readonly facts: Readonly<Record<string, Value>>;
  readonly tables: Readonly<Record<string, readonly Readonly<Record<string, Value>>[]>>;
}

export type Value = string | number | boolean | undefined;

/** One JSON object, indented: facts by name, tables as lists. */
export function toJson(file: string, { kind, facts, tables }: Document): string {
  return `${JSON.stringify({ file, kind, ...facts, ...tables }, null, 2)}\n`;
}

/** Facts line by line, then each table with its columns aligned; an empty table is left out. */
export function toText(file: string, { kind, facts, tables }: Document): string {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  const width = Math.max(...known.map(([name]) => name.length), 4);
  const lines = [`${file}: ${kind}`];
  for (const [name, value] of known) lines.push(`  ${name.padEnd(width)}  ${shown(value)}`);
  for (const [title, rows] of Object.entries(tables)) {
    if (rows.length > 0) lines.push("", `${title}:`, ...tableLines(rows));
  }
  return `${lines.join("\n")}\n`;
}

function tableLines(rows: Document["tables"][string]): string[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => names.map((name) => shown(row[name])));
  const widths = names.map((name, c) =>
    cells.reduce((most, row) => Math.max(most, row[c]!.length), name.length),
  );
  const isRight = names.map((name) =>
    rows.every((row) => row[name] === undefined || typeof row[name] === "number"),
  );
  const line = (row: readonly string[]) =>
    `  ${row
      .map((cell, c) => (isRight[c] ? cell.padStart(widths[c]!) : cell.padEnd(widths[c]!)))
      .join("  ")
      .trimEnd()}`;
  return [line(names), ...cells.map(line)];
}

function shown(value: Value): string {
  if (value === undefined) return "-";
  return value === "" ? '""' : String(value);
}

/** `2026-11-20T10:15:00.123456789Z` of ns since the epoch. */
export function timeText(ns: bigint): string {
  const seconds = ns / 1_000_000_000n - (ns % 1_000_000_000n < 0n ? 1n : 0n);
  const rest = ns - seconds * 1_000_000_000n;
  const text = new Date(Number(seconds) * 1000).toISOString();
  return `${text.slice(0, 19)}.${String(rest).padStart(9, "0")}Z`;
}
