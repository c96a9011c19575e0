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
const zoneName = /^[A-Za-z][A-Za-z0-9_+/-]{0,60}$/;

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
  const local = Date.UTC(
    field("year"),
    field("month") - 1,
    field("day"),
    field("hour"),
    field("minute"),
    field("second"),
  );
  const offsetSeconds = Math.round(local / 1000 - seconds);
  const shown = parts.get("timeZoneName") ?? "";
  return { offsetSeconds, name: /^[A-Z]{3,5}$/.test(shown) ? shown : numericName(offsetSeconds) };
}

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
    return new Intl.DateTimeFormat("en-US", {
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
