/** Offset and abbreviation of a zone at an instant. */
export interface ZoneState {
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
