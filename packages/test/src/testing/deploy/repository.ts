import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

/** The folder of the checkout. */
export const root = fileURLToPath(new URL("../../../../..", import.meta.url));

/** A value of a YAML file. */
export type Value = string | number | boolean | null | undefined | readonly Value[] | Fields;
export interface Fields {
  readonly [name: string]: Value;
}

export function readText(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The paths of the files below a folder, relative to the checkout. */
export function filesBelow(folder: string): string[] {
  const found = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}

/** Parses a YAML text with one document; keys with `<<` are merged, as Docker and Helm do. */
export function parseYaml(text: string): Fields {
  return asFields(parse(text, { merge: true }));
}

/** Parses all documents of a YAML text that are not empty; throws at errors, also at duplicate keys. */
export function parseObjects(text: string): Fields[] {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return [];
  for (const { errors } of documents) if (errors[0] !== undefined) throw errors[0];
  return documents.map((document) => document.toJS()).filter((value) => value !== null);
}

/** The value as a map; throws when it is something else. */
export function asFields(value: Value): Fields {
  if (isFields(value)) return value;
  throw new Error(`not a map: ${JSON.stringify(value)}`);
}

export function isFields(value: Value): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as a list, empty when there is no value; throws when it is something else. */
export function asList(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  if (value === undefined || value === null) return [];
  throw new Error(`not a list: ${JSON.stringify(value)}`);
}

/** Follows names and indexes from a value; undefined where a step leads nowhere. */
export function at(value: Value, ...path: readonly (string | number)[]): Value {
  let found = value;
  for (const step of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Fields)[step];
  }
  return found;
}

/** Runs a program in the checkout. */
export function runTool(
  command: string,
  args: readonly string[],
): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  return { status, output: `${stdout}${stderr}`.trim() };
}

/** The names of the metrics in the text of `/metrics`, with the suffixes of histograms, and `up`, which Prometheus adds. */
export function metricsTold(text: string): Set<string> {
  const told = new Set(["up"]);
  for (const [, name = "", type] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm))
    for (const end of type === "histogram" ? ["_bucket", "_count", "_sum"] : [""])
      told.add(`${name}${end}`);
  return told;
}

/** The queries of the alerts. */
export function ruleQueries(): string[] {
  const groups = asList(at(parseYaml(readText("deploy/grafana/alerts.yaml")), "groups"));
  return groups
    .flatMap((group) => asList(at(group, "rules")))
    .map((rule) => String(asFields(rule).expr));
}

/** The names of the metrics in a query: words outside of strings, labels and groupings that no bracket follows. */
export function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/"(?:\\.|[^"\\])*"/g, "")
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, "")
    .replaceAll(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, "");
  const words = [...bare.matchAll(/\b([a-z_][a-z0-9_]*)\b(?!\s*\()/gi)].map(
    ([, word]) => word ?? "",
  );
  return words.filter((word) => !/^(and|or|unless|by|without|bool|offset)$/.test(word));
}

/** The queries of the panels of a dashboard. */
export function queriesOf(dashboard: Fields): string[] {
  return asList(dashboard.panels).flatMap((panel) =>
    asList(at(panel, "targets")).map((target) => String(at(target, "expr"))),
  );
}
