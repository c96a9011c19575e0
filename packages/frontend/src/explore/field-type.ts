import { parseGoDuration } from "@skald/model";

/** What the values of a field are, judged by one of them. */
export type FieldType = "int" | "float" | "boolean" | "duration" | "bytes" | "string";

const maxInt64 = 2n ** 63n;

/** The first type, in the order of the list, that a text can be read as. */
export function fieldTypeOf(text: string): FieldType {
  if (isInt(text)) return "int";
  if (floatText.test(text)) return "float";
  if (booleans.has(text)) return "boolean";
  if (parseGoDuration(text) !== undefined) return "duration";
  if (isBytes(text)) return "bytes";
  return "string";
}

const floatText =
  /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)p[+-]?\d+|inf|infinity|nan)$/i;
/** A number has no more digits than this. */
const digitsMax = 64;
const booleans = new Set(
  ["1", "t", "T", "TRUE", "true", "True"].concat(["0", "f", "F", "FALSE", "false", "False"]),
);

function isInt(text: string): boolean {
  if (!/^[+-]?\d+$/.test(text) || text.length > digitsMax) return false;
  const value = BigInt(text);
  return value >= -maxInt64 && value < maxInt64;
}

/** A number, with thousands apart or not, and a unit of bytes. */
function isBytes(text: string): boolean {
  return /^[\d,]*\.?[\d,]*\s*(?:b|[kmgtpe]i?b?|)$/i.test(text) && /^[\d.,]*\d/.test(text);
}
