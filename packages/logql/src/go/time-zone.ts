/** Offset and abbreviation of a zone at an instant. */
export interface ZoneState {
  readonly offsetSeconds: number;
  readonly name: string;
}

const utc: ZoneState = { offsetSeconds: 0, name: "UTC" };
const formatters = new Map<string, Intl.DateTimeFormat | undefined>();

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
  if (!formatters.has(zone)) formatters.set(zone, create(zone));
  return formatters.get(zone);
}

function create(zone: string): Intl.DateTimeFormat | undefined {
  // names of zones are short; anything else is not asked for twice
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,60}$/.test(zone) || formatters.size > 1000) return undefined;
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
