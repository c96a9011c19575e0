import { isUtf8 } from "node:buffer";
import { noTimestampSeconds } from "../shared/raw-push.js";
import { latin1, type PlainPush } from "./push-oracle.js";

/**
 * What JSON.parse makes of a push body: the push, `reject`, or undefined where it has no say (invalid UTF-8, equal
 * keys, control characters within strings, and `stream` objects, of which only their presence is compared). What
 * follows the first document is not looked at.
 */
export function jsonOracle(body: Uint8Array): readonly PlainPush[] | "reject" | undefined {
  if (!isUtf8(body) || body.some((byte) => byte < 0x20)) return undefined;
  const text = firstDocument(new TextDecoder("utf-8", { ignoreBOM: true }).decode(body));
  try {
    const value: unknown = JSON.parse(text);
    return hasEqualKeys(text) ? undefined : readBody(value);
  } catch {
    return "reject";
  }
}

function firstDocument(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch (error) {
    const end = /after JSON at position (\d+)/.exec(String(error))?.[1];
    return end === undefined ? text : text.slice(0, Number(end));
  }
}

/** Labels of streams that have them, for comparison with the oracle. */
export const someLabels = "{}";

type JsonObject = Readonly<Record<string, unknown>>;

function readBody(body: unknown): readonly PlainPush[] {
  if (body === null) return [];
  return list(object(body).streams).map((stream) => {
    const labels = object(stream).stream ?? null;
    return {
      labels: labels === null ? "" : object(labels) && someLabels,
      rows: list(object(stream).values).map((entry) => {
        if (entry === null) throw new Error("null entry");
        const [time, line, metadata] = list(entry);
        const { length } = list(entry);
        return {
          ...readTime(time, length > 0),
          line: length > 1 ? latin1(string(line)) : "",
          pairs: length > 2 ? readPairs(object(metadata)) : [],
        };
      }),
    };
  });
}

function readTime(time: unknown, given: boolean): { seconds: number; nanos: number } {
  if (!given) return { seconds: noTimestampSeconds, nanos: 0 };
  if (!/^-?[0-9]+$/.test(string(time))) throw new Error("not decimal");
  const total = BigInt(string(time));
  if (BigInt.asIntN(64, total) !== total) throw new Error("beyond 64 bits");
  const nanos = ((total % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  return { seconds: Number((total - nanos) / 1_000_000_000n), nanos: Number(nanos) };
}

function readPairs(metadata: JsonObject): readonly (readonly [string, string])[] {
  return Object.entries(metadata).map(([name, value]) => [latin1(name), latin1(string(value))]);
}

function object(value: unknown): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error("object");
  return value as JsonObject;
}

function list(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new Error("array");
  return value;
}

function string(value: unknown): string {
  if (typeof value !== "string") throw new Error("string");
  return value;
}

/** True when some object of this JSON text, which is well formed, has a key twice. */
function hasEqualKeys(text: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  const tokens = text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g);
  for (const [token, colon] of tokens) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (colon !== undefined) {
      const key: string = JSON.parse(token.slice(0, -colon.length));
      const keys = open.at(-1);
      if (keys?.has(key)) return true;
      keys?.add(key);
    }
  }
  return false;
}
