import { createHash } from "node:crypto";
import { basename } from "node:path";
import { parse, stringify } from "yaml";
import {
  asFields,
  asList,
  type Fields,
  filesBelow,
  isFields,
  parseYaml,
  readText,
  type Value,
} from "../deploy/repository.js";
import { type Part, type Pipeline, parseTemplate, type Term } from "./parse.js";

/** A value of a template; a field of an object may be a function. */
type Data = Value | ((...args: Data[]) => Data) | { readonly [name: string]: Data };
type Functions = Readonly<Record<string, (...args: Data[]) => Data>>;

/**
 * The files of a chart by name, as `helm template` would write them, for values merged over the chart's own. It knows the
 * actions and functions of Go, Sprig and Helm that our chart uses, and throws at others.
 */
export function renderChart(folder: string, values: Fields, name = "skald"): Map<string, string> {
  const chart = parseYaml(readText(`${folder}/Chart.yaml`));
  const files = filesBelow(`${folder}/templates`);
  const templates = files.map((file) => ({
    file: basename(file),
    ...parseTemplate(readText(file)),
  }));
  const defined = new Map(templates.flatMap((template) => [...template.defined]));
  const data = {
    Values: merged(parseYaml(readText(`${folder}/values.yaml`)), values),
    Chart: { Name: chart.name, Version: chart.version, AppVersion: chart.appVersion },
    Release: { Name: name, Namespace: "logs", Service: "Helm" },
    Files: chartFiles(folder),
  };
  const rendered = templates
    .filter(({ file }) => !file.endsWith(".tpl"))
    .map(({ file, parts }): [string, string] => [
      file,
      new Renderer(defined, data).render(parts, data),
    ]);
  return new Map(rendered);
}

/** Merges values over others, maps by key; null removes a key, as in Helm. */
export function merged(base: Fields, over: Fields): Fields {
  const result: Record<string, Value> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const known = result[name];
    result[name] = isFields(value) && isFields(known) ? merged(known, value) : value;
  }
  return result;
}

function chartFiles(folder: string): Data {
  const read = (path: Data) => readText(`${folder}/${path}`);
  return {
    Get: read,
    Glob: (pattern: Data) => {
      const [start = "", end = ""] = String(pattern).split("*");
      const files = filesBelow(`${folder}/${start}`).map((file) => `${start}${basename(file)}`);
      return Object.fromEntries(
        files.filter((file) => file.endsWith(end)).map((file) => [file, read(file)]),
      );
    },
  };
}

class Renderer {
  readonly #defined: ReadonlyMap<string, readonly Part[]>;
  readonly #functions: Functions;
  #dollar: Data;
  /** Scopes, the innermost last. */
  #scopes: Map<string, Data>[] = [];

  constructor(defined: ReadonlyMap<string, readonly Part[]>, dollar: Data) {
    this.#defined = defined;
    this.#dollar = dollar;
    this.#functions = {
      ...plainFunctions,
      include: (name, data) => {
        const parts = defined.get(String(name));
        if (parts === undefined) throw new Error(`no template ${name}`);
        return new Renderer(this.#defined, data).render(parts, data);
      },
      tpl: (text, data) =>
        new Renderer(defined, data).render(parseTemplate(String(text)).parts, data),
    };
  }

  render(parts: readonly Part[], dot: Data): string {
    this.#scopes.push(new Map());
    const text = parts.map((part) => this.#renderPart(part, dot)).join("");
    this.#scopes.pop();
    return text;
  }

  #renderPart(part: Part, dot: Data): string {
    switch (part.kind) {
      case "text":
        return part.text;
      case "print":
        return print(this.#evaluate(part.pipeline, dot));
      case "set": {
        const value = this.#evaluate(part.pipeline, dot);
        const scope = part.isNew ? this.#scopes.at(-1) : this.#scopeOf(part.name);
        scope?.set(part.name, value);
        return "";
      }
      case "if":
      case "with": {
        const value = this.#evaluate(part.pipeline, dot);
        if (!isTrue(value)) return this.render(part.other, dot);
        return this.render(part.body, part.kind === "with" ? value : dot);
      }
      case "range":
        return this.#renderRange(part, dot);
    }
  }

  #renderRange(part: Part & { kind: "range" }, dot: Data): string {
    const value = this.#evaluate(part.pipeline, dot);
    const entries: [Data, Data][] = Array.isArray(value)
      ? value.map((item, index) => [index, item])
      : Object.entries((value ?? {}) as Fields).sort(([a], [b]) => (a < b ? -1 : 1));
    if (entries.length === 0) return this.render(part.other, dot);
    const [first, second] = part.names;
    const texts = entries.map(([key, item]) => {
      const scope = new Map<string, Data>();
      if (second !== undefined) scope.set(second, item);
      if (first !== undefined) scope.set(first, second === undefined ? item : key);
      this.#scopes.push(scope);
      const text = this.render(part.body, item);
      this.#scopes.pop();
      return text;
    });
    return texts.join("");
  }

  #scopeOf(name: string): Map<string, Data> {
    const scope = this.#scopes.findLast((one) => one.has(name));
    if (scope === undefined) throw new Error(`no variable ${name}`);
    return scope;
  }

  #evaluate(pipeline: Pipeline, dot: Data): Data {
    let last: Data[] = [];
    for (const [head, ...rest] of pipeline) {
      const args = [...rest.map((term) => this.#term(term, dot)), ...last];
      last = [head === undefined ? null : this.#command(head, args, dot)];
    }
    return last[0];
  }

  #command(term: Term, args: Data[], dot: Data): Data {
    const value = this.#term(term, dot, args);
    if (term.head.kind === "function") return value;
    if (typeof value === "function") return value(...args);
    if (args.length > 0) throw new Error(`${JSON.stringify(term)} takes no arguments`);
    return value;
  }

  #term({ head, fields }: Term, dot: Data, args: Data[] = []): Data {
    let value = this.#head(head, dot, args);
    for (const field of fields) {
      if (typeof value !== "object" || value === null)
        throw new Error(`no ${field} of ${JSON.stringify(value)}: .${fields.join(".")}`);
      value = (value as { readonly [name: string]: Data })[field];
    }
    return value;
  }

  #head(head: Term["head"], dot: Data, args: Data[]): Data {
    switch (head.kind) {
      case "literal":
        return head.value;
      case "dot":
        return dot;
      case "pipeline":
        return this.#evaluate(head.pipeline, dot);
      case "variable":
        return head.name === "$" ? this.#dollar : this.#scopeOf(head.name).get(head.name);
      case "function": {
        const found = this.#functions[head.name];
        if (found === undefined) throw new Error(`function ${head.name} is not understood here`);
        return found(...args);
      }
    }
  }
}

const plainFunctions: Functions = {
  and: (...args) => (args.every(isTrue) ? args.at(-1) : args.find((arg) => !isTrue(arg))),
  or: (...args) => args.find(isTrue) ?? args.at(-1),
  not: (arg) => !isTrue(arg),
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  default: (other, value) => (isTrue(value) ? value : other),
  ternary: (yes, no, isYes) => (isYes === true ? yes : no),
  contains: (part, text) => String(text).includes(String(part)),
  printf: (format, ...args) => String(format).replaceAll("%s", () => print(args.shift())),
  quote: (value) => JSON.stringify(print(value)),
  trunc: (length, text) => String(text).slice(0, Number(length)),
  trimSuffix: (end, text) =>
    String(text).replace(new RegExp(`${String(end).replace(/[.]/g, "\\.")}$`), ""),
  base: (path) => basename(String(path)),
  toString: (value: Data): Data => (value === undefined || value === null ? "" : String(value)),
  replace: (from, to, text) => String(text).replaceAll(String(from), String(to)),
  randAlphaNum: (length) => "r".repeat(Number(length)),
  b64dec: (text) => Buffer.from(String(text), "base64").toString(),
  // No cluster is asked.
  lookup: () => ({}),
  concat: (...lists) => lists.flatMap((one) => asList(one as Value)),
  append: (items, item) => [...asList(items as Value), item as Value],
  prepend: (items, item) => [item as Value, ...asList(items as Value)],
  first: (items) => asList(items as Value)[0],
  last: (items) => asList(items as Value).at(-1),
  rest: (items) => asList(items as Value).slice(1),
  has: (item, items) => asList(items as Value).includes(item as Value),
  join: (separator, items) => asList(items as Value).join(String(separator)),
  splitList: (separator, text) => String(text).split(String(separator)),
  int: (value) => Math.trunc(Number(value)),
  gt: (a, b) => Number(a) > Number(b),
  kindIs: (kind, value) => kindOf(value) === kind,
  // A real one is a hash with a random salt.
  htpasswd: (name, password) => `${name}:hash of ${password}`,
  omit: (map, ...names) =>
    Object.fromEntries(
      Object.entries(asFields((map ?? {}) as Value)).filter(([name]) => !names.includes(name)),
    ),
  list: (...items) => items as Value[],
  dict: (...items) =>
    Object.fromEntries(
      items.flatMap((name, i) => (i % 2 === 0 ? [[String(name), items[i + 1]]] : [])),
    ) as Fields,
  get: (map, name) => asFields(map as Value)[String(name)],
  merge: (first, ...rest) =>
    rest.reduce((all, one) => merged(asFields(one as Value), asFields(all as Value)), first),
  mergeOverwrite: (first, ...rest) =>
    rest.reduce((all, one) => merged(asFields(all as Value), asFields(one as Value)), first),
  toYaml: (value) => stringify(value, { lineWidth: 0, sortMapEntries: true }).trimEnd(),
  fromYaml: (text) => parse(String(text)),
  indent: (width, text) => indent(Number(width), String(text)),
  nindent: (width, text) => `\n${indent(Number(width), String(text))}`,
  sha256sum: (text) => createHash("sha256").update(String(text)).digest("hex"),
  required: (message, value) => {
    if (value === undefined || value === null || value === "") throw new Error(String(message));
    return value;
  },
  fail: (message) => {
    throw new Error(String(message));
  },
};

function kindOf(value: Data): string {
  if (Array.isArray(value)) return "slice";
  if (value === undefined || value === null) return "invalid";
  return typeof value === "object" ? "map" : typeof value;
}

function indent(width: number, text: string): string {
  return text.replace(/^/gm, " ".repeat(width));
}

function isTrue(value: Data): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function print(value: Data): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "object")
    throw new Error(`a map or list is printed: ${JSON.stringify(value)}`);
  return String(value);
}
