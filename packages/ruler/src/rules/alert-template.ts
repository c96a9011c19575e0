import { Budget } from "@skald/logql";
import {
  compileTemplate,
  type FunctionTable,
  goFunctions,
  goTime,
  logqlFunctions,
  mapValue,
  type Template,
  type TemplateFunction,
  TemplateRunError,
  type Value,
} from "@skald/logql/template";
import { type Labels, parsePrometheusDuration, SkaldError } from "@skald/model";

/** The data of the templates of one alert. */
interface AlertData {
  readonly labels: Labels;
  readonly externalLabels: Readonly<Record<string, string>>;
  readonly externalUrl: string;
  readonly value: number;
  readonly nowNs: bigint;
}

/** Names that every template of an alert knows. They add no line, so that places in the template stay right. */
const definitions =
  "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}";
/** The longest that one template may take, ms, and the longest text that it may make. */
const maxTemplateMs = 100;
const maxTextLength = 64 * 1024;

/** Compiles a template of an alert. Throws TemplateSyntaxError. */
export function parseAlertTemplate(text: string, alert: string): Template {
  return compileTemplate(definitions + text, `__alert_${alert}`, alertFunctions);
}

/** What a label or an annotation says of one alert; of a template that fails, why. */
export function expandTemplate(template: Template, data: AlertData): string {
  const until = performance.now() + maxTemplateMs;
  const budget = new Budget({ shouldStop: () => performance.now() > until });
  const row = { line: () => "", timestampNs: () => data.nowNs, nowNs: () => data.nowNs, budget };
  try {
    const text = template.run(dataMap(data), row);
    if (text.length <= maxTextLength) return text;
    return `<error expanding template: result longer than ${maxTextLength} characters>`;
  } catch (error) {
    const isTooSlow = error instanceof SkaldError;
    if (!isTooSlow && !(error instanceof TemplateRunError)) throw error;
    const why = isTooSlow ? `it takes longer than ${maxTemplateMs} ms` : error.message;
    return `<error expanding template: ${why}>`;
  }
}

function dataMap({ labels, externalLabels, externalUrl, value }: AlertData) {
  const pairs = labels.names.map((name, i): [string, Value] => [name, labels.values[i] as string]);
  return mapValue(
    new Map<string, Value>([
      ["Labels", mapValue(new Map(pairs), "")],
      ["ExternalLabels", mapValue(new Map(Object.entries(externalLabels)), "")],
      ["ExternalURL", externalUrl],
      ["Value", value],
    ]),
    null,
  );
}

const nsPerSecond = 1e9;
const logql = (name: string): TemplateFunction => logqlFunctions.get(name) as TemplateFunction;
const replaceAll = logql("regexReplaceAll");
const countMatches = logql("count");

/** A function of one text. */
function onText(change: (text: string) => string): TemplateFunction {
  return { takes: "s", call: ([text]) => change(text as string) };
}

/** A function of a number, or of a text that is one. */
function onNumber(change: (value: number) => Value): TemplateFunction {
  return { takes: "v", call: ([value]) => change(toNumber(value as Value)) };
}

function toNumber(value: Value): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "string") throw new TemplateRunError("can't convert it to float");
  const number =
    specialNumbers.get(value) ?? (/^\s|\s$|^$/.test(value) ? Number.NaN : Number(value));
  if (Number.isNaN(number) && value !== "NaN")
    throw new TemplateRunError(
      `strconv.ParseFloat: parsing ${JSON.stringify(value)}: invalid syntax`,
    );
  return number;
}

const specialNumbers: ReadonlyMap<string, number> = new Map([
  ["NaN", Number.NaN],
  ["+Inf", Number.POSITIVE_INFINITY],
  ["Inf", Number.POSITIVE_INFINITY],
  ["-Inf", Number.NEGATIVE_INFINITY],
]);

function toTime(seconds: number): Value {
  if (!Number.isFinite(seconds) || Math.abs(seconds) > 253_402_300_799)
    throw new TemplateRunError(`${seconds} cannot be represented as a nanoseconds timestamp`);
  return goTime(BigInt(Math.round(seconds * 1000)) * 1_000_000n);
}

const links: Readonly<Record<string, TemplateFunction>> = {
  graphLink: onText((expr) => `/graph?g0.expr=${escapeQuery(expr)}&g0.tab=0`),
  tableLink: onText((expr) => `/graph?g0.expr=${escapeQuery(expr)}&g0.tab=1`),
  urlquery: { takes: "v*", call: (args) => escapeQuery(args.map(String).join("")) },
  html: { takes: "v*", call: (args) => escapeHtml(args.map(String).join("")) },
  safeHtml: onText((text) => text),
  stripPort: onText((text) =>
    text.replace(/^(\[[^\]]*\]|[^:]*):[^:]*$/, "$1").replace(/^\[(.*)\]$/, "$1"),
  ),
  stripDomain: onText((text) => {
    const [, host = "", port = ""] = /^(.*?)(:\d+)?$/s.exec(text) ?? [];
    const isAddress = /^\d+(\.\d+){3}$/.test(host) || host.includes(":");
    return isAddress ? text : (host.split(".", 1)[0] as string) + port;
  }),
};

const texts: Readonly<Record<string, TemplateFunction>> = {
  title: onText((text) =>
    text.replace(
      /(^|[^\p{L}\p{N}_'])(\p{L})/gu,
      (_, before, letter) => before + letter.toUpperCase(),
    ),
  ),
  toUpper: onText((text) => text.toUpperCase()),
  toLower: onText((text) => text.toLowerCase()),
  reReplaceAll: {
    takes: "sss",
    call: ([pattern, by, text], row) => replaceAll.call([pattern, text, by] as Value[], row),
  },
  match: { takes: "ss", call: (args, row) => countMatches.call(args, row) !== 0n },
  args: { takes: "v*", call: (values) => mapOf(values.map((value, i) => [`arg${i}`, value])) },
};

const numbers: Readonly<Record<string, TemplateFunction>> = {
  humanize: onNumber(humanize),
  humanize1024: onNumber(humanize1024),
  humanizeDuration: onNumber(humanizeDuration),
  humanizePercentage: onNumber(humanizePercentage),
  humanizeTimestamp: onNumber((value) =>
    Number.isFinite(value) ? toTime(value) : formatShort(value),
  ),
  toTime: onNumber(toTime),
  parseDuration: {
    takes: "s",
    call: ([text]) => {
      const ns = parsePrometheusDuration(text as string);
      if (ns !== undefined) return Number(ns) / nsPerSecond;
      throw new TemplateRunError(`not a valid duration string: ${JSON.stringify(text)}`);
    },
  },
  now: { takes: "", call: (_, row) => Number(row.nowNs()) / nsPerSecond },
};

/** Functions for the results of `query`. There are none, because a template must not read the store. */
const samples: Readonly<Record<string, TemplateFunction>> = {
  query: {
    takes: "s",
    call: () => {
      throw new TemplateRunError("templates of this ruler cannot query");
    },
  },
  first: {
    takes: "v",
    call: ([list]) => {
      if (Array.isArray(list) && list.length > 0) return list[0] as Value;
      throw new TemplateRunError("first() called on vector with no elements");
    },
  },
  label: {
    takes: "sv",
    call: ([name, sample]) => fieldOf(fieldOf(sample, "Labels"), name as string),
  },
  value: { takes: "v", call: ([sample]) => fieldOf(sample, "Value") },
  strvalue: { takes: "v", call: ([sample]) => fieldOf(fieldOf(sample, "Labels"), "__value__") },
  sortByLabel: {
    takes: "sv",
    call: ([name, list]) => {
      const key = (sample: Value) => String(fieldOf(fieldOf(sample, "Labels"), name as string));
      const items = Array.isArray(list) ? [...(list as readonly Value[])] : [];
      return items.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
    },
  },
};

/** The functions of templates in labels and annotations. */
const alertFunctions: FunctionTable = new Map([
  ...goFunctions,
  ...Object.entries({ ...links, ...texts, ...numbers, ...samples }),
]);

function fieldOf(value: Value | undefined, name: string): Value {
  if (typeof value === "object" && value !== null && "get" in value)
    return value.get(name) ?? value.missing;
  throw new TemplateRunError("it is no sample of a query");
}

function mapOf(pairs: readonly [string, Value][]): Value {
  const entries = new Map(pairs);
  return {
    kind: "map",
    missing: null,
    get: (key) => entries.get(key),
    keys: () => [...entries.keys()].sort(),
  };
}

function escapeQuery(text: string): string {
  return encodeURIComponent(text)
    .replaceAll("%20", "+")
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

const htmlEscapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => htmlEscapes[char]!);
}

/** Go's `%.4g`: four digits that count. */
function formatShort(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [digits = "", power = "0"] = value.toExponential(3).split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 4) {
    const sign = exponent < 0 ? "-" : "+";
    return `${trimZeros(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  return trimZeros(value.toFixed(Math.max(0, 3 - exponent)));
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const large = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const small = ["m", "u", "n", "p", "f", "a", "z", "y"];
const binary = ["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];

/** `1.234k`, `5m`: metric prefixes. */
function humanize(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return formatShort(value);
  return Math.abs(value) >= 1 ? scaledDown(value, large, 1000) : scaledUp(value);
}

/** `1.5Mi`: powers of 1024. */
function humanize1024(value: number): string {
  if (Math.abs(value) <= 1 || !Number.isFinite(value)) return formatShort(value);
  return scaledDown(value, binary, 1024);
}

/** `1h 2m 3s` from seconds. */
function humanizeDuration(value: number): string {
  if (!Number.isFinite(value)) return formatShort(value);
  if (value === 0) return `${formatShort(value)}s`;
  if (Math.abs(value) < 1) return `${scaledUp(value)}s`;
  const sign = value < 0 ? "-" : "";
  const whole = Math.trunc(Math.abs(value));
  const seconds = whole % 60;
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600) % 24;
  const days = Math.floor(whole / 86_400);
  if (days !== 0) return `${sign}${days}d ${hours}h ${minutes}m ${seconds}s`;
  if (hours !== 0) return `${sign}${hours}h ${minutes}m ${seconds}s`;
  if (minutes !== 0) return `${sign}${minutes}m ${seconds}s`;
  return `${formatShort(value)}s`;
}

/** `12.34%` from a share. */
function humanizePercentage(value: number): string {
  return `${formatShort(value * 100)}%`;
}

function scaledDown(value: number, prefixes: readonly string[], by: number): string {
  let scaled = value;
  let prefix = "";
  for (const next of prefixes) {
    if (Math.abs(scaled) < by) break;
    prefix = next;
    scaled /= by;
  }
  return formatShort(scaled) + prefix;
}

function scaledUp(value: number): string {
  let scaled = value;
  let prefix = "";
  for (const next of small) {
    if (Math.abs(scaled) >= 1) break;
    prefix = next;
    scaled *= 1000;
  }
  return formatShort(scaled) + prefix;
}
