import { floorDiv } from "@skald/model";
import { civilTime, formatGoTime, type GoTime, goTime, isZone, zeroTime } from "../go/time.js";
import { parseGoTime } from "../go/time-parse.js";
import {
  isTime,
  type TemplateFunction,
  TemplateRunError,
  text,
  time,
  type Value,
} from "./value.js";

const second = 1_000_000_000n;

export const timeFunctions: Readonly<Record<string, TemplateFunction>> = {
  now: { takes: "", call: (_, row) => goTime(row.nowNs()) },
  date: {
    takes: "sv",
    call: (args, row) => formatGoTime(timeOf(args[1] as Value, row.nowNs()), text(args, 0)),
  },
  toDate: {
    takes: "ss",
    call: (args) => parseGoTime(text(args, 0), "Local", text(args, 1)) ?? zeroTime,
  },
  toDateInZone: {
    takes: "sss",
    call: (args) => {
      const zone = isZone(text(args, 1)) ? text(args, 1) : "UTC";
      return parseGoTime(text(args, 0), zone, text(args, 2)) ?? zeroTime;
    },
  },
  unixEpoch: { takes: "t", call: (args) => String(floorDiv(time(args, 0).ns, second)) },
  unixEpochMillis: { takes: "t", call: (args) => String(floorDiv(time(args, 0).ns, 1_000_000n)) },
  unixEpochNanos: { takes: "t", call: (args) => String(unixNanos(time(args, 0))) },
  unixToTime: { takes: "s", call: (args) => unixToTime(text(args, 0)) },
};

/** ns since the epoch in 64 bits, as Go has them: they wrap before 1678 and behind 2262. */
function unixNanos({ ns }: GoTime): bigint {
  return BigInt.asIntN(64, ns);
}

/** A time, or seconds since the epoch; anything else is now. */
function timeOf(value: Value, nowNs: bigint): GoTime {
  if (isTime(value)) return value;
  return goTime(typeof value === "bigint" ? value * second : nowNs);
}

const unitNs: Readonly<Record<number, bigint | undefined>> = {
  5: 86_400n * second,
  10: second,
  13: 1_000_000n,
  16: 1_000n,
  19: 1n,
};

/** The number of digits tells the unit: days, s, ms, us, ns. */
function unixToTime(value: string): GoTime {
  if (!/^[+-]?\d+$/.test(value)) {
    throw new TemplateRunError(
      `unable to parse time '${value}': strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`,
    );
  }
  const unit = unitNs[value.length];
  if (unit === undefined) {
    throw new TemplateRunError(
      `unable to parse time '${value}': timestamp length must be one of 5, 10, 13, 16, 19`,
    );
  }
  return goTime(BigInt(value) * unit);
}

/** A method of a time, as `.Format`; undefined when there is none of the name. */
export const timeMethods: ReadonlyMap<string, TimeMethod> = new Map(
  Object.entries<TimeMethod>({
    Format: { takes: "s", call: (value, args) => formatGoTime(value, text(args, 0)) },
    UTC: { takes: "", call: (value) => goTime(value.ns) },
    Local: { takes: "", call: (value) => goTime(value.ns) },
    Unix: { takes: "", call: (value) => floorDiv(value.ns, second) },
    UnixMilli: { takes: "", call: (value) => floorDiv(value.ns, 1_000_000n) },
    UnixMicro: { takes: "", call: (value) => floorDiv(value.ns, 1_000n) },
    UnixNano: { takes: "", call: unixNanos },
    Year: field((civil) => civil.year),
    Day: field((civil) => civil.day),
    Hour: field((civil) => civil.hour),
    Minute: field((civil) => civil.minute),
    Second: field((civil) => civil.second),
    Nanosecond: field((civil) => civil.nanosecond),
    YearDay: field((civil) => civil.yearDay),
    Add: { takes: "i", call: (value, args) => ({ ...value, ns: value.ns + (args[0] as bigint) }) },
    Truncate: { takes: "i", call: (value, args) => truncate(value, args[0] as bigint) },
    Month: { takes: "", call: (value) => formatGoTime(value, "January") },
    Weekday: { takes: "", call: (value) => formatGoTime(value, "Monday") },
    IsZero: { takes: "", call: (value) => value.ns === zeroTime.ns },
    Before: { takes: "t", call: (value, args) => value.ns < time(args, 0).ns },
    After: { takes: "t", call: (value, args) => value.ns > time(args, 0).ns },
    Equal: { takes: "t", call: (value, args) => value.ns === time(args, 0).ns },
    String: {
      takes: "",
      call: (value) => formatGoTime(value, "2006-01-02 15:04:05.999999999 -0700 MST"),
    },
  }),
);

/** The last multiple of a duration since year 1. */
function truncate(value: GoTime, unitNs: bigint): GoTime {
  return unitNs <= 0n ? value : { ...value, ns: value.ns - ((value.ns - zeroTime.ns) % unitNs) };
}

interface TimeMethod {
  readonly takes: string;
  readonly call: (value: GoTime, args: readonly Value[]) => Value;
}

function field(read: (civil: ReturnType<typeof civilTime>) => number): TimeMethod {
  return { takes: "", call: (value) => BigInt(read(civilTime(value))) };
}
