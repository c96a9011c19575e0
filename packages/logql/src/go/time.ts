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
interface CivilTime {
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

function pad(value: number, width = 2): string {
  return String(Math.abs(value)).padStart(width, "0");
}

function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n ? quotient - 1n : quotient;
}

/** Offset and abbreviation of a zone at an instant. */
interface ZoneState {
  readonly offsetSeconds: number;
  readonly name: string;
}

const utc: ZoneState = { offsetSeconds: 0, name: "UTC" };
/** Names can come from lines, and a formatter takes some ten KB. */
const formattersMax = 200;
/** By name, undefined for what no zone is called; the oldest goes first. */
const formatters = new Map<string, Intl.DateTimeFormat | undefined>();
/** Other texts are not asked for, nor remembered. */
const zoneName = /^(?:[A-Z][A-Za-z0-9_+-]{0,30}(?:\/(?!$)|$)){1,3}$/;

/** True for `UTC`, `Local`, the empty text and names of the time zone database. */
export function isZone(zone: string): boolean {
  return isUtc(zone) || formatter(zone) !== undefined;
}

/** The state of a zone at an instant (s since the epoch); an unknown zone is UTC. */
export function zoneAt(zone: string, seconds: number): ZoneState {
  const format = isUtc(zone) ? undefined : formatter(zone);
  if (format === undefined) return utc;
  const parts = new Map(
    format.formatToParts(new Date(seconds * 1000)).map((part) => [part.type, part.value]),
  );
  const field = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type));
  const { month, day, hour, minute, second } = {
    ...{ month: field("month") - 1, day: field("day"), hour: field("hour") },
    ...{ minute: field("minute"), second: field("second") },
  };
  // Years before the first are counted otherwise there; the right one is within a day.
  const year = new Date(seconds * 1000).getUTCFullYear();
  const offsets = [year, year - 1, year + 1].map((each) => {
    const local = new Date(0);
    local.setUTCFullYear(each, month, day);
    return local.setUTCHours(hour, minute, second) / 1000 - seconds;
  });
  const offsetSeconds = offsets.find((offset) => Math.abs(offset) < 2 * 86_400) ?? 0;
  return { offsetSeconds, name: nameOf(zone, offsetSeconds, parts.get("timeZoneName") ?? "") };
}

/** The abbreviation of the time zone database, as far as it is known; else the offset, as that has it too. */
function nameOf(zone: string, offsetSeconds: number, shown: string): string {
  if (offsetSeconds % 900 !== 0) return "LMT";
  if (/^[A-Z]{3,5}$/.test(shown)) return shown;
  const names = namesByOffset[zone] ?? {};
  return names[offsetSeconds / 3600] ?? numericName(offsetSeconds);
}

/** Abbreviations that no language of ours shows, by hours east. */
const namesByOffset: Readonly<Record<string, Readonly<Record<number, string>> | undefined>> = {
  "Asia/Jerusalem": { 2: "IST", 3: "IDT" },
  "Asia/Karachi": { 5: "PKT" },
  "Asia/Manila": { 8: "PST" },
  "Asia/Seoul": { 9: "KST" },
  "Asia/Shanghai": { 8: "CST" },
  "Asia/Taipei": { 8: "CST" },
  "Europe/Moscow": { 3: "MSK", 4: "MSD" },
};

/** In whose English, or language, the abbreviations of a zone are those of the time zone database. */
const languages: readonly (readonly [RegExp, string])[] = [
  [/^(?:Europe|CET|EET|MET|WET)|^Asia\/Beirut$|^Africa\/(?:Cairo|Tripoli)$/, "en-GB"],
  [/^Australia|^Pacific\/Auckland$/, "en-AU"],
  [/^Asia\/(?:Calcutta|Kolkata)$/, "en-IN"],
  [/^Africa/, "en-ZA"],
  [/^Asia\/Tokyo$/, "ja"],
  [/^Asia\/Hong_Kong$/, "en-HK"],
  [/^Asia\/Jakarta$/, "id"],
];

function isUtc(zone: string): boolean {
  return zone === "UTC" || zone === "" || zone === "Local";
}

function formatter(zone: string): Intl.DateTimeFormat | undefined {
  if (!zoneName.test(zone)) return undefined;
  if (formatters.has(zone)) return formatters.get(zone);
  const format = create(zone);
  const [oldest] = formatters.size < formattersMax ? [] : formatters.keys();
  if (oldest !== undefined) formatters.delete(oldest);
  formatters.set(zone, format);
  return format;
}

function create(zone: string): Intl.DateTimeFormat | undefined {
  try {
    const language = languages.find(([zones]) => zones.test(zone))?.[1] ?? "en-US";
    return new Intl.DateTimeFormat(`${language}-u-nu-latn-ca-iso8601`, {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
      timeZoneName: "short",
    });
  } catch {
    return undefined;
  }
}

function numericName(offsetSeconds: number): string {
  const abs = Math.abs(offsetSeconds);
  const hours = String(Math.floor(abs / 3600)).padStart(2, "0");
  const minutes = Math.floor(abs / 60) % 60;
  const sign = offsetSeconds < 0 ? "-" : "+";
  return `${sign}${hours}${minutes === 0 ? "" : String(minutes).padStart(2, "0")}`;
}
