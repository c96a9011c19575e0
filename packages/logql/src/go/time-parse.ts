import { dayNames, type GoTime, isZone, layoutPiece, monthNames, zoneAt } from "./time.js";

interface Fields {
  year: number;
  month: number;
  day: number;
  yearDay: number;
  hour: number;
  minute: number;
  second: number;
  nanosecond: number;
  afternoon: boolean | undefined;
  offsetSeconds: number | undefined;
}

/** Parses a text by a Go layout; a text without zone is in `zone`. Undefined when it does not fit. */
export function parseGoTime(layout: string, zone: string, text: string): GoTime | undefined {
  const fields: Fields = {
    year: 0,
    month: 1,
    day: 1,
    yearDay: 0,
    hour: 0,
    minute: 0,
    second: 0,
    nanosecond: 0,
    afternoon: undefined,
    offsetSeconds: undefined,
  };
  let at = 0;
  let from = 0;
  for (const m of layout.matchAll(layoutPiece)) {
    const literal = skipLiteral(layout.slice(from, m.index), text, at);
    if (literal < 0) return undefined;
    at = readPiece(m[0], text, literal, fields);
    if (at < 0) return undefined;
    from = m.index + m[0].length;
    // Go reads a fraction behind the seconds even when the layout has none
    if ((m[0] === "05" || m[0] === "5") && !/^[.,][09]/.test(layout.slice(from))) {
      at = readFraction(text, at, fields);
    }
  }
  at = skipLiteral(layout.slice(from), text, at);
  return at === text.length ? timeOf(fields, zone) : undefined;
}

/** A blank of the layout takes any number of blanks. */
function skipLiteral(literal: string, text: string, at: number): number {
  for (const c of literal) {
    if (c === " ") {
      while (text[at] === " ") at++;
      continue;
    }
    if (!text.startsWith(c, at)) return -1;
    at += c.length;
  }
  return at;
}

function readFraction(text: string, at: number, fields: Fields): number {
  const m = /^[.,](\d+)/.exec(text.slice(at, at + 32));
  if (m === null) return at;
  fields.nanosecond = Number((m[1] as string).slice(0, 9).padEnd(9, "0"));
  return at + m[0].length;
}

const numeric: Readonly<Record<string, readonly [keyof Fields, RegExp]>> = {
  "2006": ["year", /^\d{4}/],
  "01": ["month", /^\d{2}/],
  "1": ["month", /^\d{1,2}/],
  "02": ["day", /^\d{2}/],
  "2": ["day", /^\d{1,2}/],
  _2: ["day", /^ ?\d{1,2}/],
  "002": ["yearDay", /^\d{3}/],
  __2: ["yearDay", /^ {0,2}\d{1,3}/],
  "15": ["hour", /^\d{2}/],
  "03": ["hour", /^\d{2}/],
  "3": ["hour", /^\d{1,2}/],
  "04": ["minute", /^\d{2}/],
  "4": ["minute", /^\d{1,2}/],
  "05": ["second", /^\d{2}/],
  "5": ["second", /^\d{1,2}/],
};

function readPiece(piece: string, text: string, at: number, fields: Fields): number {
  const rest = text.slice(at, at + 64);
  if (piece === "_2006") return rest[0] === "_" ? readPiece("2006", text, at + 1, fields) : -1;
  const form = numeric[piece];
  if (form !== undefined) {
    const m = form[1].exec(rest);
    if (m === null) return -1;
    Object.assign(fields, { [form[0]]: Number(m[0]) });
    return at + m[0].length;
  }
  switch (piece) {
    case "06": {
      const m = /^\d{2}/.exec(rest);
      if (m === null) return -1;
      fields.year = Number(m[0]) + (Number(m[0]) >= 69 ? 1900 : 2000);
      return at + 2;
    }
    case "January":
    case "Jan":
      return readName(piece, monthNames, rest, at, (index) => {
        fields.month = index + 1;
      });
    case "Monday":
    case "Mon":
      return readName(piece, dayNames, rest, at, () => {});
    case "PM":
    case "pm": {
      const half = rest.slice(0, 2);
      if (half !== (piece === "PM" ? half.toUpperCase() : half.toLowerCase())) return -1;
      if (!/^[ap]m$/i.test(half)) return -1;
      fields.afternoon = half.toLowerCase() === "pm";
      return at + 2;
    }
    case "MST": {
      const m = /^(?:UTC|[A-Z]{3,5}|[+-]\d{2})/.exec(rest);
      if (m === null) return -1;
      if (m[0] === "UTC" || m[0] === "GMT") fields.offsetSeconds = 0;
      return at + m[0].length;
    }
    default:
      if (piece[0] === "." || piece[0] === ",") {
        const end = readFraction(text, at, fields);
        return piece[1] === "0" && end - at !== piece.length ? -1 : end;
      }
      return readOffset(piece, rest, at, fields);
  }
}

function readName(
  piece: string,
  names: readonly string[],
  rest: string,
  at: number,
  found: (index: number) => void,
): number {
  const isShort = piece.length === 3;
  for (const [index, name] of names.entries()) {
    const want = isShort ? name.slice(0, 3) : name;
    if (rest.slice(0, want.length).toLowerCase() !== want.toLowerCase()) continue;
    found(index);
    return at + want.length;
  }
  return -1;
}

function readOffset(piece: string, rest: string, at: number, fields: Fields): number {
  // With seconds, Go takes no Z.
  if (/^Z07(?::?00)?$/.test(piece) && rest[0] === "Z") {
    fields.offsetSeconds = 0;
    return at + 1;
  }
  const colon = piece.includes(":") ? ":" : "";
  const digits = piece.replace(/[^\d]/g, "").length;
  const form =
    digits === 2
      ? /^([+-])(\d{2})/
      : digits === 4
        ? new RegExp(`^([+-])(\\d{2})${colon}(\\d{2})`)
        : new RegExp(`^([+-])(\\d{2})${colon}(\\d{2})${colon}(\\d{2})`);
  const m = form.exec(rest);
  if (m === null) return -1;
  const abs = Number(m[2]) * 3600 + Number(m[3] ?? 0) * 60 + Number(m[4] ?? 0);
  fields.offsetSeconds = m[1] === "-" ? -abs : abs;
  return at + m[0].length;
}

function timeOf(fields: Fields, zone: string): GoTime | undefined {
  const { year, minute, second, nanosecond } = fields;
  let { month, day, hour } = fields;
  if (fields.afternoon !== undefined && hour > 12) return undefined;
  if (fields.afternoon === true && hour < 12) hour += 12;
  if (fields.afternoon === false && hour === 12) hour = 0;
  if (month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59) return undefined;
  if (fields.yearDay > 0) {
    const date = utcDate(year, 1, fields.yearDay);
    if (date.getUTCFullYear() !== year) return undefined;
    month = date.getUTCMonth() + 1;
    day = date.getUTCDate();
  }
  const date = utcDate(year, month, day);
  if (day < 1 || date.getUTCMonth() + 1 !== month) return undefined;
  const local = date.getTime() / 1000 + hour * 3600 + minute * 60 + second;
  const toNs = (offset: number) => BigInt(local - offset) * 1_000_000_000n + BigInt(nanosecond);
  if (fields.offsetSeconds !== undefined) {
    const { offsetSeconds } = fields;
    if (offsetSeconds === 0) return { kind: "time", ns: toNs(0), zone: "UTC" };
    return { kind: "time", ns: toNs(offsetSeconds), zone: "UTC", offsetSeconds };
  }
  const known = isZone(zone) ? zone : "UTC";
  // the offset at the instant itself, found from a first guess
  const guess = zoneAt(known, local).offsetSeconds;
  const offset = zoneAt(known, local - guess).offsetSeconds;
  return { kind: "time", ns: toNs(offset), zone: known };
}

function utcDate(year: number, month: number, day: number): Date {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date;
}
