import { formatPrometheusDuration, invalidArgument, parsePrometheusDuration } from "@skald/model";
import { parseYaml } from "@skald/runtime/yaml";
import { isMap, isPair, isScalar, isSeq, LineCounter, type ParsedNode, stringify } from "yaml";
import type { Rule, RuleGroup } from "./rule-group.js";

const nsPerMs = 1_000_000n;
/** Most tokens of YAML per MiB of text. Rules that people write have half as many. */
const maxTokensPerMib = 500_000;
const mib = 1024 * 1024;
/** Most labels and annotations of one group; the main thread compares and sends them whenever the group changes. */
const maxNames = 10_000;
const noGroup: RuleGroup = {
  ...{ name: "", intervalMs: 0, queryOffsetMs: undefined, limit: 0 },
  ...{ labels: {}, rules: [] },
};

/** Reads one group; keys that are not known are ignored. Throws invalid_argument with the place of what is wrong. */
export function readGroup(text: string): RuleGroup {
  const { reader, root } = open(text);
  return root === null ? noGroup : reader.group(root);
}

/** Reads a file of groups, `groups: [...]`. Throws invalid_argument. */
export function readGroups(text: string): readonly RuleGroup[] {
  const { reader, root } = open(text);
  if (root === null) return [];
  return reader.list(reader.map(root).get("groups")).map((node) => reader.group(node));
}

/** A group as plain data for YAML, without defaults. */
export function plainGroup(group: RuleGroup): Record<string, unknown> {
  const { name, intervalMs, queryOffsetMs, limit, labels, rules } = group;
  return {
    name,
    ...(intervalMs > 0 ? { interval: duration(intervalMs) } : {}),
    ...(queryOffsetMs === undefined ? {} : { query_offset: duration(queryOffsetMs) }),
    ...(limit > 0 ? { limit } : {}),
    ...filled("labels", labels),
    rules: rules.map(plainRule),
  };
}

/** Writes what `plainGroup` made, or maps and lists of it, with texts as they are, indented as Loki's answers are. */
export function writeYaml(value: unknown): string {
  return linesOf(value, 0).join("");
}

/** The lines of a value in a block that is `indent` spaces deep. */
function linesOf(value: unknown, indent: number): string[] {
  const margin = " ".repeat(indent);
  // A block begins at the next multiple of four, but the keys of an item in a list follow its dash.
  const inner = 4 * (Math.floor(indent / 4) + 1);
  if (Array.isArray(value))
    return value.map(
      (item) =>
        `${margin}- ${linesOf(item, indent + 2)
          .join("")
          .trimStart()}`,
    );
  const entries = value instanceof Map ? [...value] : Object.entries(value as object);
  return entries.flatMap(([key, child]: [string, unknown]) => {
    const isBlock = typeof child === "object" && child !== null && !isEmpty(child);
    const entry = scalarEntry(key, isBlock ? [] : child, inner - indent);
    const own = entry.replace(/^(?=.)/gm, margin);
    return isBlock ? [own.replace(/ \[\]\n$/, "\n"), ...linesOf(child, inner)] : [own];
  });
}

function isEmpty(value: object): boolean {
  return (Array.isArray(value) ? value : Object.keys(value)).length === 0;
}

function scalarEntry(key: string, value: unknown, indent: number): string {
  // The library gives a block that begins with a space a wrong depth.
  const blockQuote = typeof value !== "string" || !/^\s/.test(value);
  return stringify(new Map([[key, value]]), { indent, lineWidth: 0, blockQuote });
}

function plainRule(rule: Rule): Record<string, unknown> {
  return {
    ...(rule.record === "" ? { alert: rule.alert } : { record: rule.record }),
    expr: rule.expr,
    ...(rule.forMs > 0 ? { for: duration(rule.forMs) } : {}),
    ...(rule.keepFiringForMs > 0 ? { keep_firing_for: duration(rule.keepFiringForMs) } : {}),
    ...filled("labels", rule.labels),
    ...filled("annotations", rule.annotations),
  };
}

function filled(key: string, map: Readonly<Record<string, string>>): Record<string, unknown> {
  for (const _ in map) return { [key]: map };
  return {};
}

function duration(ms: number): string {
  return formatPrometheusDuration(BigInt(ms) * nsPerMs);
}

type Node = ParsedNode | null;

function open(text: string): { reader: Reader; root: Node } {
  const lines = new LineCounter();
  const maxTokens = maxTokensPerMib * Math.ceil(text.length / mib);
  // Every scalar is a text: `for: 5m`, `limit: 10`, and a label `on: yes`.
  const { document, errors } = parseYaml(text, { schema: "failsafe", lines, maxTokens });
  const reader = new Reader(lines);
  const [error] = errors;
  if (error !== undefined) reader.fail(error.offset, error.message.split("\n")[0] ?? "");
  const root = document.contents as Node;
  return { reader, root: isAbsent(root) ? null : root };
}

/** True for a missing node, and for YAML's forms of null. */
function isAbsent(node: Node | undefined): boolean {
  if (node === null || node === undefined) return true;
  return (
    isScalar(node) && node.type === "PLAIN" && /^(~|null|Null|NULL|)$/.test(String(node.value))
  );
}

/** Turns nodes into values. Errors name their place. */
class Reader {
  readonly #lines: LineCounter;
  /** Labels and annotations of the group so far. */
  #names = 0;

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  group(node: Node): RuleGroup {
    this.#names = 0;
    const map = this.map(node);
    const offset = map.get("query_offset");
    return {
      name: this.#text(map.get("name")),
      intervalMs: this.#duration(map.get("interval")),
      queryOffsetMs: isAbsent(offset) ? undefined : this.#duration(offset),
      limit: this.#integer(map.get("limit")),
      labels: this.#texts(map.get("labels")),
      rules: this.list(map.get("rules")).map((item) => this.#rule(item)),
    };
  }

  /** The nodes of a map by key. */
  map(node: Node | undefined): ReadonlyMap<string, Node> {
    if (node === undefined || isAbsent(node)) return new Map();
    if (!isMap(node)) return this.#misfit(node, "a map");
    const found = new Map<string, Node>();
    for (const pair of node.items) {
      if (isPair(pair))
        found.set(String(isScalar(pair.key) ? pair.key.value : ""), pair.value as Node);
    }
    return found;
  }

  list(node: Node | undefined): readonly Node[] {
    if (node === undefined || isAbsent(node)) return [];
    return isSeq(node) ? (node.items as Node[]) : this.#misfit(node, "a list");
  }

  fail(offset: number, message: string): never {
    const { line, col } = this.#lines.linePos(offset);
    throw invalidArgument(`unable to decoded rule group: line ${line}, column ${col}: ${message}`);
  }

  #rule(node: Node): Rule {
    const map = this.map(node);
    return {
      record: this.#text(map.get("record")),
      alert: this.#text(map.get("alert")),
      expr: this.#text(map.get("expr")),
      query: "",
      forMs: this.#duration(map.get("for")),
      keepFiringForMs: this.#duration(map.get("keep_firing_for")),
      labels: this.#texts(map.get("labels")),
      annotations: this.#texts(map.get("annotations")),
    };
  }

  #text(node: Node | undefined): string {
    if (node === undefined || isAbsent(node)) return "";
    return isScalar(node) ? String(node.value) : this.#misfit(node, "a text");
  }

  #texts(node: Node | undefined): Record<string, string> {
    const texts: Record<string, string> = Object.create(null);
    const map = this.map(node);
    this.#names += map.size;
    if (this.#names > maxNames)
      this.fail(node?.range[0] ?? 0, `a group has at most ${maxNames} labels and annotations`);
    for (const [name, value] of map) texts[name] = this.#text(value);
    return { ...texts };
  }

  #duration(node: Node | undefined): number {
    if (node === undefined || isAbsent(node)) return 0;
    const text = this.#text(node);
    const ns = parsePrometheusDuration(text);
    if (ns === undefined) return this.#misfit(node, "a duration such as 5m");
    return Number(ns / nsPerMs);
  }

  #integer(node: Node | undefined): number {
    if (node === undefined || isAbsent(node)) return 0;
    const text = this.#text(node);
    if (!/^[+-]?\d{1,15}$/.test(text)) return this.#misfit(node, "a whole number");
    return Number(text);
  }

  #misfit(node: Node, wanted: string): never {
    return this.fail(node?.range[0] ?? 0, `expected ${wanted}`);
  }
}
