import { parseRfc3339 } from "@skald/model";

/** What a format finds in a line. */
export interface ParsedLine {
  /** Undefined if the line has no time. */
  readonly ns: bigint | undefined;
  readonly line: string;
  /** Structured metadata: what the line does not say itself. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Fields that labels, metadata and the time may be taken from. */
  readonly field: (name: string) => string | undefined;
  /** The line goes on with the next one. */
  readonly isPartial?: boolean;
}

type Parse = (text: string, nowMs: number) => ParsedLine | undefined;

/** The formats by name, in the order in which a line is tried. */
const formats = {
  docker: parseDocker,
  journald: parseJournald,
  json: parseJson,
  cri: parseCri,
  syslog: parseSyslog,
  klog: parseKlog,
  nginx: parseNginx,
  logfmt: parseLogfmt,
  dated: parseDated,
} satisfies Record<string, Parse>;

export const formatNames = ["auto", ...Object.keys(formats), "plain"] as const;

/** Reads lines in one format, or in the format that each line has. */
export class LineParser {
  readonly #given: readonly Parse[];
  /** The format of the line before: most files have one. */
  #last: Parse | undefined;

  constructor(format: string) {
    const one = formats[format as keyof typeof formats];
    this.#given = format === "plain" ? [] : one === undefined ? Object.values(formats) : [one];
  }

  parse(text: string, nowMs: number): ParsedLine {
    const again = this.#last?.(text, nowMs);
    if (again !== undefined) return again;
    for (const parse of this.#given) {
      const found = parse(text, nowMs);
      if (found === undefined) continue;
      // No format that was tried before takes such lines. Objects are the exception: several formats have them.
      this.#last = parse === parseJson ? undefined : parse;
      return found;
    }
    return { ns: undefined, line: text, metadata: {}, field: () => undefined };
  }
}

const timeNames = ["ts", "time", "timestamp", "@timestamp", "t", "date", "datetime"];

/** Times as programs write them: RFC 3339, with a blank or a comma too, and Unix times from seconds to ns. */
export function parseLogTime(text: string): bigint | undefined {
  if (/^\d{9,19}(\.\d+)?$/.test(text)) {
    const [whole = "", fraction = ""] = text.split(".");
    const unit = whole.length <= 11 ? 9 : whole.length <= 14 ? 6 : whole.length <= 17 ? 3 : 0;
    return BigInt(whole + fraction.slice(0, unit).padEnd(unit, "0"));
  }
  const m =
    /^(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?\s*(Z|UTC|[+-]\d\d:?\d\d)?$/.exec(
      text,
    );
  if (m === null) return undefined;
  const [, year, month, day, clock, fraction = "0", zone = "Z"] = m;
  const offset = zone === "UTC" ? "Z" : zone.replace(/^([+-]\d\d):?(\d\d)$/, "$1:$2");
  return parseRfc3339(`${year}-${month}-${day}T${clock}.${fraction}${offset}`);
}

function jsonObject(text: string): Record<string, unknown> | undefined {
  if (text[0] !== "{") return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** The text of a field, which may be in an object of the object: `kubernetes.pod`. */
function fieldOf(object: Record<string, unknown>, path: string): string | undefined {
  let value: unknown = Object.hasOwn(object, path) ? object[path] : undefined;
  if (value === undefined && path.includes("."))
    value = path
      .split(".")
      .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], object);
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function timeIn(field: (name: string) => string | undefined): bigint | undefined {
  for (const name of timeNames) {
    const text = field(name);
    const ns = text === undefined ? undefined : parseLogTime(text);
    if (ns !== undefined) return ns;
  }
  return undefined;
}

/** Docker's json-file driver. */
function parseDocker(text: string): ParsedLine | undefined {
  if (!text.startsWith('{"log":')) return undefined;
  const object = jsonObject(text);
  if (typeof object?.log !== "string" || typeof object.time !== "string") return undefined;
  const inner = jsonObject(object.log);
  return {
    ns: parseRfc3339(object.time),
    line: object.log.replace(/\n$/, ""),
    metadata: typeof object.stream === "string" ? { stream: object.stream } : {},
    field: (name) =>
      (inner === undefined ? undefined : fieldOf(inner, name)) ?? fieldOf(object, name),
    isPartial: !object.log.endsWith("\n"),
  };
}

const priorities = ["critical", "critical", "critical", "error", "warn", "info", "info", "debug"];

/** `journalctl -o json`. */
function parseJournald(text: string): ParsedLine | undefined {
  const object = text.includes('"__REALTIME_TIMESTAMP"') ? jsonObject(text) : undefined;
  if (object === undefined) return undefined;
  const { MESSAGE, PRIORITY, __REALTIME_TIMESTAMP: micros } = object;
  const metadata: Record<string, string> = {};
  const level = priorities[Number(PRIORITY)];
  if (level !== undefined) metadata.level = level;
  for (const [name, key] of [
    ["unit", "_SYSTEMD_UNIT"],
    ["hostname", "_HOSTNAME"],
    ["identifier", "SYSLOG_IDENTIFIER"],
    ["pid", "_PID"],
  ] as const)
    if (typeof object[key] === "string") metadata[name] = object[key];
  // A message that is no UTF-8 is a list of bytes.
  const line = Array.isArray(MESSAGE)
    ? Buffer.from(MESSAGE as number[]).toString()
    : String(MESSAGE ?? "");
  return {
    ns: /^\d+$/.test(String(micros)) ? BigInt(String(micros)) * 1000n : undefined,
    ...{ line, metadata, field: (name) => fieldOf(object, name) },
  };
}

function parseJson(text: string): ParsedLine | undefined {
  const object = jsonObject(text);
  if (object === undefined) return undefined;
  const field = (name: string) => fieldOf(object, name);
  return { ns: timeIn(field), line: text, metadata: {}, field };
}

/** What the kubelet writes: time, stream, whether the line is whole, and the line. */
function parseCri(text: string): ParsedLine | undefined {
  const m = /^(\d{4}-\S+) (stdout|stderr) ([FP]) ?(.*)$/s.exec(text);
  const ns = m === null ? undefined : parseRfc3339(m[1]!);
  if (m === null || ns === undefined) return undefined;
  const [, , stream = "", part, line = ""] = m;
  const inner = parseJson(line) ?? parseLogfmt(line);
  return {
    ns,
    line,
    metadata: { stream },
    field: inner?.field ?? (() => undefined),
    isPartial: part === "P",
  };
}

const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** RFC 5424 and RFC 3164, the latter also as in a file, without its priority. Times without a zone are local. */
function parseSyslog(text: string, nowMs: number): ParsedLine | undefined {
  const m5424 = /^<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) \S+ /.exec(text);
  if (m5424 !== null) {
    const [, priority, time = "", host = "-", app = "-", pid = "-"] = m5424;
    return { ...syslogFields({ priority, host, app, pid }), ns: parseRfc3339(time), line: text };
  }
  const m =
    /^(?:<(\d{1,3})>)?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\S+) ([^\s:[]+)(?:\[(\d+)\])?:/.exec(
      text,
    );
  if (m === null) return undefined;
  const [, priority, month = "", day, hour, minute, second, host = "-", app = "-", pid = "-"] = m;
  const at = months.indexOf(month);
  if (at < 0) return undefined;
  const clock = [Number(day), Number(hour), Number(minute), Number(second)] as const;
  const year = new Date(nowMs).getFullYear();
  const sameYear = new Date(year, at, ...clock).getTime();
  // The year is not written: a December line that is read in January is of the year before.
  const ms = sameYear > nowMs + 86_400_000 ? new Date(year - 1, at, ...clock).getTime() : sameYear;
  const ns = BigInt(ms) * 1_000_000n;
  return { ...syslogFields({ priority, host, app, pid }), ns, line: text };
}

function syslogFields(
  parts: Readonly<Record<"host" | "app" | "pid", string>> & { priority: string | undefined },
) {
  const { priority, ...names } = parts;
  const metadata: Record<string, string> = {};
  if (priority !== undefined) metadata.level = priorities[Number(priority) & 7]!;
  for (const [name, value] of Object.entries(names)) if (value !== "-") metadata[name] = value;
  return { metadata, field: (name: string) => metadata[name] };
}

const klogLevels: Readonly<Record<string, string>> = {
  I: "info",
  W: "warn",
  E: "error",
  F: "fatal",
};

/** What Kubernetes' own programs write. */
function parseKlog(text: string, nowMs: number): ParsedLine | undefined {
  const m = /^([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\s+\d+ \S+:\d+\] /.exec(text);
  if (m === null) return undefined;
  const [, letter = "I", month, day, hour, minute, second, micros = "0"] = m;
  const clock = [Number(day), Number(hour), Number(minute), Number(second)] as const;
  const year = new Date(nowMs).getFullYear();
  const sameYear = Date.UTC(year, Number(month) - 1, ...clock);
  const ms =
    sameYear > nowMs + 86_400_000 ? Date.UTC(year - 1, Number(month) - 1, ...clock) : sameYear;
  const ns = BigInt(ms) * 1_000_000n + BigInt(micros) * 1000n;
  return { ns, line: text, metadata: { level: klogLevels[letter]! }, field: () => undefined };
}

/** Access logs of nginx and Apache, and nginx's error log. */
function parseNginx(text: string): ParsedLine | undefined {
  const m =
    /^(\S+) \S+ \S+ \[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d\d)(\d\d)\] "/.exec(
      text,
    );
  if (m === null) return undefined;
  const [, client, day, month = "", year, clock, hours, minutes] = m;
  const at = String(months.indexOf(month) + 1).padStart(2, "0");
  const ns = parseRfc3339(`${year}-${at}-${day}T${clock}${hours}:${minutes}`);
  return {
    ns,
    line: text,
    metadata: {},
    field: (name) => (name === "client" ? client : undefined),
  };
}

function parseLogfmt(text: string): ParsedLine | undefined {
  if (!/^[\w.@-]+=/.test(text)) return undefined;
  const pairs = new Map<string, string>();
  for (const [, name = "", quoted, plain] of text.matchAll(
    /([\w.@-]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g,
  ))
    pairs.set(name, quoted?.replace(/\\(.)/g, "$1") ?? plain ?? "");
  const field = (name: string) => pairs.get(name);
  return { ns: timeIn(field), line: text, metadata: {}, field };
}

/** A line that begins with a date and a time. Without a zone it is in UTC. */
function parseDated(text: string): ParsedLine | undefined {
  const m =
    /^\[?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\s?(?:Z|UTC|[+-]\d\d:?\d\d)?)/.exec(
      text,
    );
  const ns = m === null ? undefined : parseLogTime(m[1]!.trim());
  return ns === undefined ? undefined : { ns, line: text, metadata: {}, field: () => undefined };
}
