import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

/** The folder of the checkout. */
export const root = fileURLToPath(new URL("../../../../..", import.meta.url));

/** What a YAML file may hold. */
export type Value = string | number | boolean | null | undefined | readonly Value[] | Fields;
export interface Fields {
  readonly [name: string]: Value;
}

export function readText(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The files below a folder, with the paths that they have in the checkout. */
export function filesBelow(folder: string): string[] {
  const found = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}

/** The one document of a YAML text; keys with `<<` are merged, as Docker and Helm do. */
export function parseYaml(text: string): Fields {
  return asFields(parse(text, { merge: true }));
}

/** All documents of a YAML text that are not empty; throws what the parser complains of, duplicate keys included. */
export function parseObjects(text: string): Fields[] {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return [];
  for (const { errors } of documents) if (errors[0] !== undefined) throw errors[0];
  return documents.map((document) => document.toJS()).filter((value) => value !== null);
}

/** A value that must be a map. */
export function asFields(value: Value): Fields {
  if (isFields(value)) return value;
  throw new Error(`not a map: ${JSON.stringify(value)}`);
}

export function isFields(value: Value): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value that must be a list; nothing is an empty one. */
export function asList(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  if (value === undefined || value === null) return [];
  throw new Error(`not a list: ${JSON.stringify(value)}`);
}

/** What is found by following names and numbers from a value; undefined where there is nothing. */
export function at(value: Value, ...path: readonly (string | number)[]): Value {
  let found = value;
  for (const step of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Fields)[step];
  }
  return found;
}

/** The output of a program that ran in the checkout. */
export function runTool(
  command: string,
  args: readonly string[],
): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  return { status, output: `${stdout}${stderr}`.trim() };
}

/** Names of metrics that the text of `/metrics` tells, those of a histogram with their endings, and Prometheus' own `up`. */
export function metricsTold(text: string): Set<string> {
  const told = new Set(["up"]);
  for (const [, name = "", type] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm))
    for (const end of type === "histogram" ? ["_bucket", "_count", "_sum"] : [""])
      told.add(`${name}${end}`);
  return told;
}

/** What the alerts ask for. */
export function ruleQueries(): string[] {
  const groups = asList(at(parseYaml(readText("deploy/grafana/alerts.yaml")), "groups"));
  return groups
    .flatMap((group) => asList(at(group, "rules")))
    .map((rule) => String(asFields(rule).expr));
}

/** Names of metrics in a query: words that no bracket follows and that stand outside of texts, labels and groupings. */
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

/** What the panels of a dashboard ask for. */
export function queriesOf(dashboard: Fields): string[] {
  return asList(dashboard.panels).flatMap((panel) =>
    asList(at(panel, "targets")).map((target) => String(at(target, "expr"))),
  );
}
