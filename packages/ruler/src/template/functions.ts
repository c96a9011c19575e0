import {
  type FunctionTable,
  goFunctions,
  goTime,
  logqlFunctions,
  type TemplateFunction,
  TemplateRunError,
  type Value,
} from "@skald/logql/template";
import { parsePrometheusDuration } from "@skald/model";
import {
  formatShort,
  humanize,
  humanize1024,
  humanizeDuration,
  humanizePercentage,
} from "./humanize.js";

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
  args: {
    takes: "v*",
    call: (values) => mapOf(values.map((value, i) => [`arg${i}`, value])),
  },
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

/** Of the results of `query`: there are none, because a template must not read the store. */
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

/** What templates of labels and annotations may call. */
export const alertFunctions: FunctionTable = new Map([
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
  return text.replace(/[&<>"']/g, (char) => htmlEscapes[char] as string);
}
