const quarterSeconds = 900;

/** Turns the times of a time zone into those of UTC. */
export class WallClock {
  readonly #format: Intl.DateTimeFormat | undefined;
  /** The quarter of an hour of the last answer, by the clock of the zone; no zone changes its clock within one. */
  #quarter = Number.NaN;
  #offset = 0;

  /** A name of the IANA, `UTC`, or `Local` for the zone of this machine. Throws a RangeError for any other. */
  constructor(zone: string) {
    if (zone === "UTC") return;
    this.#format = new Intl.DateTimeFormat("en-US", {
      ...(zone === "Local" ? {} : { timeZone: zone }),
      timeZoneName: "longOffset",
    });
  }

  /** Seconds since the epoch of what the clock of the zone shows, given as if it showed UTC. */
  secondsOf(shown: number): number {
    if (this.#format === undefined) return shown;
    const quarter = Math.floor(shown / quarterSeconds);
    if (quarter !== this.#quarter) {
      // The first guess may be on the wrong side of a change of the clock.
      const guess = offsetAt(this.#format, quarter * quarterSeconds);
      this.#offset = offsetAt(this.#format, quarter * quarterSeconds - guess);
      this.#quarter = quarter;
    }
    return shown - this.#offset;
  }
}

/** Seconds by which a zone is ahead of UTC at a time. */
function offsetAt(format: Intl.DateTimeFormat, seconds: number): number {
  const parts = format.formatToParts(seconds * 1000);
  const text = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  const found = /^GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text);
  if (found === null) return 0;
  const [, sign, hours, minutes, rest = "0"] = found;
  const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
  return sign === "-" ? -size : size;
}
