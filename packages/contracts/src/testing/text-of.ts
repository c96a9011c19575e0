/** A message as text, whatever memory its arrays are in and in whatever order its fields. */
export function textOf(message: unknown): string {
  return JSON.stringify(message, (_, value: unknown) => {
    if (typeof value === "bigint") return `${value}n`;
    if (ArrayBuffer.isView(value)) return Array.from(value as Uint8Array);
    if (typeof value === "number" && !Number.isFinite(value)) return String(value);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
