import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import {
  asFields,
  asList,
  at,
  type Fields,
  filesBelow,
  metricsIn,
  metricsTold,
  parseYaml,
  queriesOf,
  readText,
  ruleQueries,
  runTool,
  type Value,
} from "../testing/deploy/repository.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "../testing/server.js";

const dashboards = filesBelow("deploy/grafana/dashboards").map((path): [string, Fields] => [
  path,
  JSON.parse(readText(path)),
]);
const rules = asList(at(parseYaml(readText("deploy/grafana/alerts.yaml")), "groups")).flatMap(
  (group) => asList(at(group, "rules")).map(asFields),
);
let server: TestServer;
let known: Set<string>;

beforeAll(async () => {
  server = await startServer(makeFolder(), [
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
  ]);
  const text = await (await fetch(`${server.url}/metrics`)).text();
  known = metricsTold(text);
  // Only services of a cluster have these metrics; cluster.test.ts looks for them.
  for (const name of ["length", "duration_seconds_bucket"])
    known.add(`loki_query_scheduler_queue_${name}`);
  known.add("loki_query_scheduler_inflight_requests");
  known.add("loki_query_scheduler_connected_querier_clients");
  known.add("loki_querier_ingester_failures_total");
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

describe.each(dashboards)("%s", (_, dashboard) => {
  it("asks for metrics that a process tells", () => {
    const unknown = queriesOf(dashboard)
      .flatMap(metricsIn)
      .filter((name) => !known.has(name));
    expect(unknown).toEqual([]);
    expect(queriesOf(dashboard).length).toBeGreaterThan(9);
  });

  it("has panels that do not overlap, with titles and a data source that can be chosen", () => {
    const places = new Set<string>();
    for (const panel of asList(dashboard.panels)) {
      const { x, y, w, h } = asFields(at(panel, "gridPos"));
      for (let column = Number(x); column < Number(x) + Number(w); column++)
        for (let row = Number(y); row < Number(y) + Number(h); row++) {
          expect(places.has(`${column} ${row}`)).toBe(false);
          places.add(`${column} ${row}`);
        }
      expect(at(panel, "title")).not.toBe("");
      if (at(panel, "type") !== "row") expect(at(panel, "datasource", "uid")).toBe("${datasource}");
    }
  });

  needs("promtool")("has queries that Prometheus can parse", () => {
    const [query = ""] = queriesOf(dashboard);
    expect(query).not.toBe("");
    const text = `groups: [{ name: a, rules: [${queriesOf(dashboard)
      .map((expr) => `{ record: "a:b", expr: ${JSON.stringify(inPrometheus(expr))} }`)
      .join(", ")}] }]`;
    const file = join(makeFolder(), "queries.yaml");
    writeFileSync(file, text);
    const done = runTool("promtool", ["check", "rules", "--lint=none", file]);
    expect(done).toMatchObject({ status: 0 });
  });
});

/** Replaces the variables of Grafana in a query. */
function inPrometheus(query: string): string {
  return query.replaceAll("$__rate_interval", "5m").replaceAll("$job", ".*");
}

describe("alerts.yaml", () => {
  it("asks for metrics that a process tells", () => {
    const unknown = ruleQueries()
      .flatMap(metricsIn)
      .filter((name) => !known.has(name));
    expect(unknown).toEqual([]);
  });

  it("has names, severities and a chapter of docs/operations.md for each", () => {
    const names = rules.map(({ alert }) => String(alert));
    expect(new Set(names).size).toBe(names.length);
    const chapters = [...readText("docs/operations.md").matchAll(/^#### (Skald\w+)$/gm)].map(
      ([, name]) => name,
    );
    expect(chapters.sort()).toEqual([...names].sort());
    for (const rule of rules)
      expect(["warning", "critical"]).toContain(at(rule, "labels", "severity") as Value);
  });

  needs("promtool")("passes promtool, and its tests", () => {
    const checked = runTool("promtool", ["check", "rules", "deploy/grafana/alerts.yaml"]);
    expect(checked).toMatchObject({ status: 0 });
    const tested = runTool("promtool", ["test", "rules", "deploy/grafana/alerts.test.yaml"]);
    expect(tested).toMatchObject({ status: 0 });
  });
});

describe("provisioning", () => {
  it("has data sources by the addresses of the compose file", () => {
    const sources = asList(
      parseYaml(readText("deploy/grafana/provisioning/datasources/skald.yaml")).datasources,
    );
    expect(sources.map((one) => `${at(one, "type")} ${at(one, "url")}`)).toEqual([
      "loki http://logs:3100",
      "prometheus http://prometheus:9090",
    ]);
    const folder = at(
      parseYaml(readText("deploy/grafana/provisioning/dashboards/skald.yaml")),
      "providers",
      0,
      "options",
      "path",
    );
    expect(readText("docker-compose.yml")).toContain(`./deploy/grafana/dashboards:${folder}:ro`);
  });
});
