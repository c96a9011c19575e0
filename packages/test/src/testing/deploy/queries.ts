import { asFields, asList, at, type Fields, parseYaml, readText } from "./repository.js";

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
