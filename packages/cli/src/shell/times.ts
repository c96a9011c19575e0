// By these parts of the model alone: `skald help` needs no regular expressions.
import { floorDiv, nsPerMs, nsPerSecond, parseRfc3339 } from "@skald/model/time";
import { parseGoDuration } from "@skald/model/units";
import { Failure } from "./command.js";

const msPerMinute = 60_000;
const dayNs = 86_400n * nsPerSecond;

/** A zone of time: `Local`, `UTC`, or a name such as `Europe/Berlin`. */
export class Zone {
  readonly #name: string | undefined;
  readonly #format: Intl.DateTimeFormat | undefined;
  /** Offsets by quarter of an hour: zones change at no other times. */
  readonly #offsets = new Map<number, number>();

  constructor(name: string) {
    const isLocal = /^local$/i.test(name);
    this.#name = isLocal ? undefined : /^(utc|z)$/i.test(name) ? "UTC" : name;
    if (isLocal || this.#name === "UTC") return;
    try {
      this.#format = new Intl.DateTimeFormat("en-US", {
        ...{ timeZone: name, hourCycle: "h23", year: "numeric", month: "numeric" },
        ...{ day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" },
      });
    } catch {
      throw new Failure(
        "usage",
        `--timezone: there is no zone ${name}; write Local, UTC, or Europe/Berlin`,
      );
    }
  }

  /** Minutes that the zone is ahead of UTC at a time. */
  offsetMinutes(ms: number): number {
    if (this.#name === "UTC") return 0;
    const quarter = Math.floor(ms / (15 * msPerMinute));
    const known = this.#offsets.get(quarter);
    if (known !== undefined) return known;
    const offset = this.#format === undefined ? -new Date(ms).getTimezoneOffset() : this.#ask(ms);
    this.#offsets.set(quarter, offset);
    return offset;
  }

  /** The name that times carry: `UTC`, or an offset. */
  nameAt(ms: number): string {
    if (this.#name === "UTC") return "UTC";
    return new Intl.DateTimeFormat("en-US", {
      ...{ timeZoneName: "short", ...(this.#name === undefined ? {} : { timeZone: this.#name }) },
    })
      .formatToParts(ms)
      .find(({ type }) => type === "timeZoneName")!.value;
  }

  get isUtc(): boolean {
    return this.#name === "UTC";
  }

  #ask(ms: number): number {
    const parts: Record<string, number> = {};
    for (const { type, value } of this.#format!.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day, hour, minute, second } = parts;
    const local = Date.UTC(year, month - 1, day, hour, minute, second);
    return Math.round((local - Math.floor(ms / 1000) * 1000) / msPerMinute);
  }
}

/** ns of a time that a user wrote: RFC 3339, a date, Unix seconds to nanoseconds, `now`, `now-1h`, or `-1h`. */
export function parseTime(flag: string, text: string, zone: Zone, nowNs: bigint): bigint {
  const relative = /^(?:now)?\s*(?:([-+])\s*(.+))?$/.exec(text);
  if (text !== "" && relative !== null) {
    if (relative[2] === undefined) return nowNs;
    const ns = parseDuration(flag, relative[2]);
    return relative[1] === "-" ? nowNs - ns : nowNs + ns;
  }
  if (/^\d+(\.\d+)?$/.test(text)) return unixNs(text);
  const m =
    /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d(?:[.,]\d+)?)?)?\s*([Zz]|[+-]\d\d:\d\d)?$/.exec(
      text,
    );
  const [, date = "", minute = "00:00", second = ":00", offset] = m ?? [];
  const utc = m === null ? undefined : parseRfc3339(`${date}T${minute}${second}${offset ?? "Z"}`);
  if (utc === undefined)
    throw new Failure(
      "usage",
      `--${flag}: ${text} is no time, such as 2026-11-20T10:00:00Z, 2026-11-20 10:00, now-1h or Unix seconds`,
    );
  if (offset !== undefined) return utc;
  // The offset of the zone at that local time; asked twice, because the first guess is off by the offset itself.
  const ms = Number(utc / nsPerMs);
  const guess = ms - zone.offsetMinutes(ms) * msPerMinute;
  return utc - BigInt(zone.offsetMinutes(guess) * msPerMinute) * nsPerMs;
}

function unixNs(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  const unit = whole.length <= 11 ? 9 : whole.length <= 14 ? 6 : whole.length <= 17 ? 3 : 0;
  return BigInt(whole + fraction.slice(0, unit).padEnd(unit, "0"));
}

/** ns of `1h30m`, `90s`, `1.5h`, `7d`, `2w`. */
export function parseDuration(flag: string, text: string): bigint {
  const [, weeks, days, rest = ""] = /^(?:(\d+)w)?(?:(\d+)d)?(.*)$/s.exec(text) ?? [];
  const part = rest === "" ? 0n : parseGoDuration(rest);
  if (text === "" || part === undefined || part < 0n)
    throw new Failure("usage", `--${flag}: ${text} is no duration, such as 30s, 1h30m or 7d`);
  return BigInt(weeks ?? 0) * 7n * dayNs + BigInt(days ?? 0) * dayNs + part;
}

/** A span as the API takes it, in seconds; undefined for an empty text. logcli takes durations of Go, which end with hours. */
export function spanOf(flag: string, text: string): string | undefined {
  if (text === "") return undefined;
  const ns = /^\d+(\.\d+)?$/.test(text) ? undefined : parseDuration(flag, text);
  return ns === undefined ? text : `${Number(ns / 1_000_000n) / 1000}`;
}

export const timeFormats = [
  ...["rfc3339", "rfc3339nano", "rfc822z", "rfc1123z"],
  ...["stampmicro", "stampmilli", "stampnano", "unixdate"],
] as const;
export type TimeFormat = (typeof timeFormats)[number];

/** A time in one of Go's formats, in a zone. */
export function formatTime(ns: bigint, zone: Zone, format: TimeFormat = "rfc3339nano"): string {
  const seconds = floorDiv(ns, nsPerSecond);
  const nanos = String(ns - seconds * nsPerSecond).padStart(9, "0");
  const ms = Number(seconds) * 1000;
  const offset = zone.offsetMinutes(ms);
  const date = new Date(ms + offset * msPerMinute);
  const iso = date.toISOString().slice(0, 19);
  const clock = iso.slice(11);
  const day = iso.slice(8, 10);
  const weekday = weekdays[date.getUTCDay()]!;
  const month = months[date.getUTCMonth()]!;
  const year = iso.slice(0, 4);
  const stamp = `${month} ${String(Number(day)).padStart(2)} ${clock}`;
  switch (format) {
    case "rfc3339":
      return iso + colonOffset(offset, zone);
    case "rfc3339nano": {
      const digits = nanos.replace(/0+$/, "");
      return `${iso}${digits === "" ? "" : `.${digits}`}${colonOffset(offset, zone)}`;
    }
    case "rfc822z":
      return `${day} ${month} ${year.slice(2)} ${clock.slice(0, 5)} ${plainOffset(offset)}`;
    case "rfc1123z":
      return `${weekday}, ${day} ${month} ${year} ${clock} ${plainOffset(offset)}`;
    case "stampmilli":
      return `${stamp}.${nanos.slice(0, 3)}`;
    case "stampmicro":
      return `${stamp}.${nanos.slice(0, 6)}`;
    case "stampnano":
      return `${stamp}.${nanos}`;
    case "unixdate":
      return `${weekday} ${stamp} ${zone.nameAt(ms)} ${year}`;
  }
}

const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** `Z`, or `+02:00`. Go writes `Z` for every zone that is at UTC. */
function colonOffset(minutes: number, zone: Zone): string {
  if (minutes === 0 || zone.isUtc) return "Z";
  const text = plainOffset(minutes);
  return `${text.slice(0, 3)}:${text.slice(3)}`;
}

function plainOffset(minutes: number): string {
  const [sign, size] = minutes < 0 ? ["-", -minutes] : ["+", minutes];
  return `${sign}${String(Math.floor(size / 60)).padStart(2, "0")}${String(size % 60).padStart(2, "0")}`;
}
