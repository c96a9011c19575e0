import { floorDiv } from "@skald/model";
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
      : {
          offsetSeconds: time.offsetSeconds,
          name: time.offsetSeconds === 0 ? "UTC" : numericName(time.offsetSeconds),
        };
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

export const monthNames: readonly string[] =
  "January February March April May June July August September October November December".split(
    " ",
  );
export const dayNames: readonly string[] =
  "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** Pieces of a layout, longest first where one begins another. */
export const layoutPiece =
  /January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|01|02|03|04|05|06|002|15|2006|_2006|__2|_2|PM|pm|Z070000|Z07:00:00|Z0700|Z07:00|Z07|-070000|-07:00:00|-0700|-07:00|-07|[.,]0+(?!\d)|[.,]9+(?!\d)|[1-5]/g;

/** Formats by a Go reference-time layout such as `2006-01-02T15:04:05.000Z07:00`. */
export function formatGoTime(time: GoTime, layout: string): string {
  const civil = civilTime(time);
  return layout.replace(layoutPiece, (piece) => {
    const format = pieceFormats[piece];
    if (format !== undefined) return format(civil);
    return piece[0] === "." || piece[0] === "," ? fraction(piece, civil) : offset(piece, civil);
  });
}

const pieceFormats: Readonly<Record<string, ((t: CivilTime) => string) | undefined>> = {
  January: (t) => monthNames[t.month - 1]!,
  Jan: (t) => monthNames[t.month - 1]!.slice(0, 3),
  Monday: (t) => dayNames[t.weekday]!,
  Mon: (t) => dayNames[t.weekday]!.slice(0, 3),
  MST: (t) => t.zoneName,
  "1": (t) => String(t.month),
  "01": (t) => pad(t.month),
  "2": (t) => String(t.day),
  "02": (t) => pad(t.day),
  _2: (t) => String(t.day).padStart(2, " "),
  "002": (t) => pad(t.yearDay, 3),
  __2: (t) => String(t.yearDay).padStart(3, " "),
  "15": (t) => pad(t.hour),
  "3": (t) => String(t.hour % 12 || 12),
  "03": (t) => pad(t.hour % 12 || 12),
  "4": (t) => String(t.minute),
  "04": (t) => pad(t.minute),
  "5": (t) => String(t.second),
  "05": (t) => pad(t.second),
  "06": (t) => pad(t.year % 100),
  "2006": (t) => pad(t.year, 4),
  _2006: (t) => `_${pad(t.year, 4)}`,
  PM: (t) => (t.hour >= 12 ? "PM" : "AM"),
  pm: (t) => (t.hour >= 12 ? "pm" : "am"),
};

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

function pad(value: number, width = 2): string {
  return String(Math.abs(value)).padStart(width, "0");
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
  // Years before the first are counted otherwise there; the right one is within a day.
  const year = new Date(seconds * 1000).getUTCFullYear();
  const offsets = [year, year - 1, year + 1].map((each) => {
    const local = new Date(0);
    local.setUTCFullYear(each, field("month") - 1, field("day"));
    return local.setUTCHours(field("hour"), field("minute"), field("second")) / 1000 - seconds;
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

/** Abbreviations that none of the languages below shows, by hours east. */
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
  const minutes = Math.floor(abs / 60) % 60;
  const hours = `${offsetSeconds < 0 ? "-" : "+"}${pad(Math.floor(abs / 3600))}`;
  return minutes === 0 ? hours : hours + pad(minutes);
}
