import { zoneAt } from "./time-zone.js";

/** An instant with the zone that it is shown in. */
export interface GoTime {
  readonly kind: "time";
  /** ns since the epoch */
  readonly ns: bigint;
  /** IANA name, or `UTC`. */
  readonly zone: string;
  /** Fixed offset in seconds that wins over the zone, of a parsed numeric zone. */
  readonly offsetSeconds?: number;
}

/** Year 1 in UTC: what Go has for no time. */
export const zeroTime: GoTime = { kind: "time", ns: -62_135_596_800_000_000_000n, zone: "UTC" };

export function goTime(ns: bigint, zone = "UTC"): GoTime {
  return { kind: "time", ns, zone };
}

/** Fields of a time in its zone. */
export interface CivilTime {
  readonly year: number;
  /** 1 .. 12 */
  readonly month: number;
  readonly day: number;
  /** 0 = Sunday */
  readonly weekday: number;
  readonly yearDay: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly nanosecond: number;
  readonly offsetSeconds: number;
  readonly zoneName: string;
}

export function civilTime(time: GoTime): CivilTime {
  const seconds = floorDiv(time.ns, 1_000_000_000n);
  const zone =
    time.offsetSeconds === undefined
      ? zoneAt(time.zone, Number(seconds))
      : { offsetSeconds: time.offsetSeconds, name: fixedName(time.offsetSeconds) };
  const local = new Date((Number(seconds) + zone.offsetSeconds) * 1000);
  const year = local.getUTCFullYear();
  const startOfYear = new Date(0);
  startOfYear.setUTCFullYear(year, 0, 1);
  startOfYear.setUTCHours(0, 0, 0, 0);
  return {
    year,
    month: local.getUTCMonth() + 1,
    day: local.getUTCDate(),
    weekday: local.getUTCDay(),
    yearDay: Math.floor((local.getTime() - startOfYear.getTime()) / 86_400_000) + 1,
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    nanosecond: Number(time.ns - seconds * 1_000_000_000n),
    offsetSeconds: zone.offsetSeconds,
    zoneName: zone.name,
  };
}

export const monthNames: readonly string[] = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
export const dayNames: readonly string[] = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
];

/** Pieces of a layout, longest first where one begins another. */
export const layoutPiece =
  /January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|01|02|03|04|05|06|002|15|2006|_2006|__2|_2|PM|pm|Z070000|Z07:00:00|Z0700|Z07:00|Z07|-070000|-07:00:00|-0700|-07:00|-07|[.,]0+(?!\d)|[.,]9+(?!\d)|[1-5]/g;

/** Formats by a Go reference-time layout such as `2006-01-02T15:04:05.000Z07:00`. */
export function formatGoTime(time: GoTime, layout: string): string {
  const civil = civilTime(time);
  return layout.replace(layoutPiece, (piece) => formatPiece(piece, civil));
}

function formatPiece(piece: string, t: CivilTime): string {
  switch (piece) {
    case "January":
      return monthNames[t.month - 1] as string;
    case "Jan":
      return (monthNames[t.month - 1] as string).slice(0, 3);
    case "Monday":
      return dayNames[t.weekday] as string;
    case "Mon":
      return (dayNames[t.weekday] as string).slice(0, 3);
    case "MST":
      return t.zoneName;
    case "1":
      return String(t.month);
    case "01":
      return pad(t.month);
    case "2":
      return String(t.day);
    case "02":
      return pad(t.day);
    case "_2":
      return String(t.day).padStart(2, " ");
    case "002":
      return pad(t.yearDay, 3);
    case "__2":
      return String(t.yearDay).padStart(3, " ");
    case "15":
      return pad(t.hour);
    case "3":
      return String(t.hour % 12 || 12);
    case "03":
      return pad(t.hour % 12 || 12);
    case "4":
      return String(t.minute);
    case "04":
      return pad(t.minute);
    case "5":
      return String(t.second);
    case "05":
      return pad(t.second);
    case "06":
      return pad(t.year % 100);
    case "2006":
      return pad(t.year, 4);
    case "_2006":
      return `_${pad(t.year, 4)}`;
    case "PM":
      return t.hour >= 12 ? "PM" : "AM";
    case "pm":
      return t.hour >= 12 ? "pm" : "am";
    default:
      return piece[0] === "." || piece[0] === "," ? fraction(piece, t) : offset(piece, t);
  }
}

function fraction(piece: string, t: CivilTime): string {
  const digits = pad(t.nanosecond, 9).slice(0, piece.length - 1);
  if (piece[1] === "0") return (piece[0] as string) + digits;
  const short = digits.replace(/0+$/, "");
  return short === "" ? "" : (piece[0] as string) + short;
}

function offset(piece: string, t: CivilTime): string {
  if (piece[0] === "Z" && t.offsetSeconds === 0) return "Z";
  const abs = Math.abs(t.offsetSeconds);
  const sign = t.offsetSeconds < 0 ? "-" : "+";
  const colon = piece.includes(":") ? ":" : "";
  const hours = pad(Math.floor(abs / 3600));
  const minutes = pad(Math.floor(abs / 60) % 60);
  const form = piece.slice(1).replaceAll(":", "").length;
  if (form === 2) return sign + hours;
  const short = `${sign}${hours}${colon}${minutes}`;
  return form === 4 ? short : `${short}${colon}${pad(abs % 60)}`;
}

function fixedName(offsetSeconds: number): string {
  if (offsetSeconds === 0) return "UTC";
  const abs = Math.abs(offsetSeconds);
  const minutes = Math.floor(abs / 60) % 60;
  const name = `${offsetSeconds < 0 ? "-" : "+"}${pad(Math.floor(abs / 3600))}`;
  return minutes === 0 ? name : name + pad(minutes);
}

export function pad(value: number, width = 2): string {
  return String(Math.abs(value)).padStart(width, "0");
}

function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n ? quotient - 1n : quotient;
}
