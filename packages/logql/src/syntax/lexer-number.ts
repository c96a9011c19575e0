import { describePrometheusDuration, parseGoDuration, parsePrometheusDuration } from "@skald/model";

export interface ScannedNumber {
  readonly type: "NUMBER" | "DURATION" | "BYTES";
  readonly value: number | bigint;
  readonly end: number;
}

/** Scans the literal at a digit or a dot: a duration if it reads as one, else bytes, else a plain number. */
export function scanNumber(
  text: string,
  start: number,
): ScannedNumber | { readonly error: string } {
  const literal = match(literalPattern, text, start) ?? (text[start] as string);
  const notOctal = /^0[\d_]*?([89])[\d_]*$/.exec(literal)?.[1];
  if (notOctal !== undefined) return { error: `invalid digit '${notOctal}' in octal literal` };
  const end = start + literal.length;
  const next = text.charCodeAt(end);
  if (isUnitStart(next)) {
    const duration = match(durationPattern, text, start);
    const ns = duration === undefined ? undefined : parseDuration(duration);
    if (ns !== undefined) return { type: "DURATION", value: ns, end: start + duration!.length };
    const size = match(bytesPattern, text, start);
    const bytes = size === undefined ? undefined : parseBytes(size);
    if (bytes !== undefined) return { type: "BYTES", value: bytes, end: start + size!.length };
  }
  return { type: "NUMBER", value: parseFloatLiteral(literal), end };
}

/** Parses a duration literal of a filter or an offset: `1d`, `1h30m`, `1.5s`, without a sign. ns, or undefined. */
function parseDuration(text: string): bigint | undefined {
  if (text.length > literalLengthMax) return undefined;
  return parsePrometheusDuration(text) ?? parseGoDuration(text);
}

/** Scans `[5m]`; the text between the brackets is a Prometheus duration to the letter. */
export function scanRange(
  text: string,
  start: number,
): { readonly ns: bigint; readonly end: number } | { readonly error: string } {
  const close = text.indexOf("]", start);
  if (close < 0) return { error: "missing closing ']' in duration" };
  const body = text.slice(start + 1, close);
  const ns = body.length > literalLengthMax ? undefined : parsePrometheusDuration(body);
  return ns === undefined ? { error: describePrometheusDuration(body) } : { ns, end: close + 1 };
}

/** Longer literals cannot be numbers anyone means, and some of the parsers below take quadratic time. */
const literalLengthMax = 64;
const literalPattern =
  /0[xX][\da-fA-F_.]*(?:[pP][+-]?\d+)?|0[bBoO][\d_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?/y;
const durationPattern = /[\d.]+[nsuµμmhdwy][\d.nsuµμmhdwy]*/y;
const bytesPattern = /[\d.]+[BikKMGTP][\d.BikKMGTP]*/y;

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function isUnitStart(code: number): boolean {
  return (code >= 65 && code <= 122) || code === 0xb5 || code === 0x3bc;
}

/** Go's float syntax; NaN for what it refuses, infinite where the value is out of range. */
function parseFloatLiteral(literal: string): number {
  if (/^0[xX]/.test(literal)) return parseHexadecimal(literal);
  if (/^0[bBoO]/.test(literal) || /_(?!\d)|^_|[^\d]_/.test(literal)) return Number.NaN;
  return Number(literal.replaceAll("_", ""));
}

/** A hexadecimal number with a binary exponent, as `0x1.8p4`; without one it is no float. */
function parseHexadecimal(literal: string): number {
  const m = /^0[xX]_?([\da-fA-F]+(?:_[\da-fA-F]+)*)?(?:\.([\da-fA-F]*))?[pP]([+-]?\d+)$/.exec(
    literal,
  );
  const [, whole = "", fraction = "", exponent] = m ?? [];
  if (m === null || whole + fraction === "" || literal.length > literalLengthMax) return Number.NaN;
  const digits = Number(`0x${whole.replaceAll("_", "")}${fraction}`);
  return digits * 2 ** (Number(exponent) - 4 * fraction.length);
}

const byteUnits: ReadonlyMap<string, number> = new Map(
  Object.entries({
    b: 1,
    k: 1e3,
    kb: 1e3,
    kib: 2 ** 10,
    m: 1e6,
    mb: 1e6,
    mib: 2 ** 20,
    g: 1e9,
    gb: 1e9,
    gib: 2 ** 30,
    t: 1e12,
    tb: 1e12,
    tib: 2 ** 40,
    p: 1e15,
    pb: 1e15,
    pib: 2 ** 50,
    ki: 2 ** 10,
    mi: 2 ** 20,
    gi: 2 ** 30,
    ti: 2 ** 40,
    pi: 2 ** 50,
  }),
);

/** Parses a size literal: `5MB` and `5M` are powers of 1000, `5MiB` and `5Mi` of 1024. Whole bytes, or undefined. */
function parseBytes(text: string): number | undefined {
  if (text.length > literalLengthMax) return undefined;
  const m = /^(\d+\.?\d*|\.\d+)([A-Za-z]+)$/.exec(text);
  const unit = byteUnits.get((m?.[2] ?? "").toLowerCase());
  if (m === null || unit === undefined) return undefined;
  const bytes = Math.trunc(Number(m[1]) * unit);
  return bytes < 2 ** 64 ? bytes : undefined;
}
