import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { freePort } from "@skald/testkit";
import { needs } from "@skald/testkit/needs";
import { getJson, pushJson } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, waitFor } from "./testing/server.js";

const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    if (child.kill("SIGKILL")) await gone;
  }
});
afterAll(removeFolders);

function run(program: string, flags: readonly string[]): void {
  children.push(spawn(program, flags, { stdio: "ignore" }));
}

async function isReady(url: string): Promise<boolean> {
  return (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true;
}

async function startPrometheus(port: number): Promise<string> {
  const folder = makeFolder();
  const config = join(folder, "prometheus.yml");
  writeFileSync(config, "global: {scrape_interval: 1h}\n");
  run("prometheus", [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--web.enable-remote-write-receiver",
  ]);
  const url = `http://127.0.0.1:${port}`;
  await waitFor(() => isReady(url));
  return url;
}

async function startAlertmanager(): Promise<string> {
  const [folder, port] = [makeFolder(), await freePort()];
  const config = join(folder, "alertmanager.yml");
  writeFileSync(config, "route: {receiver: none}\nreceivers: [{name: none}]\n");
  run("prometheus-alertmanager", [
    `--config.file=${config}`,
    `--storage.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--cluster.listen-address=",
  ]);
  const url = `http://127.0.0.1:${port}`;
  await waitFor(() => isReady(url));
  return url;
}

/** Writes a configuration file for a ruler that evaluates every second. */
function configure(ruler: Record<string, unknown>): { folder: string; flags: string[] } {
  const folder = makeFolder();
  const file = join(folder, "config.yaml");
  const all = { evaluation_interval: "1s", poll_interval: "1s", ...ruler };
  writeFileSync(
    file,
    JSON.stringify({ auth_enabled: false, server: { log_format: "json" }, ruler: all }),
  );
  return { folder, flags: [`-config.file=${file}`] };
}

async function setGroup(url: string, group: unknown): Promise<void> {
  const body = JSON.stringify(group);
  // The default of curl.
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await fetch(`${url}/loki/api/v1/rules/ns`, { method: "POST", headers, body });
  expect([answer.status, await answer.text()]).toEqual([202, expect.stringContaining("success")]);
}

interface AlertStatus {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
  readonly state: string;
  readonly activeAt: string;
}

async function alertsOf(url: string): Promise<AlertStatus[]> {
  const { data } = await getJson<{ data: { alerts: AlertStatus[] } }>(
    url,
    "/prometheus/api/v1/alerts",
  );
  return data.alerts;
}

describe("rules of a running process", () => {
  needs("prometheus-alertmanager")("sends alerts to a real one, and their end", async () => {
    const alertmanager = await startAlertmanager();
    const { folder, flags } = configure({
      alertmanager_url: alertmanager,
      external_url: "http://grafana",
      external_labels: { cluster: "test" },
      alert_relabel_configs: [{ regex: "secret", action: "labeldrop" }],
    });
    const server = await startServer(folder, flags);
    const nowNs = BigInt(Date.now()) * 1_000_000n;
    const lines = Array.from(
      { length: 3 },
      (_, i) => [String(nowNs + BigInt(i)), "error"] as const,
    );
    expect(await pushJson(server.url, { app: "web" }, lines)).toBe(204);
    await setGroup(server.url, {
      name: "g",
      rules: [
        {
          alert: "Errors",
          expr: 'sum by (app) (count_over_time({app="web"} |= "error" [1h])) > 2',
          labels: { severity: "page", secret: "x" },
          annotations: { summary: "{{ $labels.app }} has {{ humanize $value }} errors" },
        },
      ],
    });
    const sent = () =>
      getJson<{ labels: unknown; annotations: unknown; generatorURL: string; endsAt: string }[]>(
        alertmanager,
        "/api/v2/alerts",
      );
    await waitFor(async () => (await sent()).length > 0);
    const [alert] = await sent();
    expect(alert).toMatchObject({
      labels: { alertname: "Errors", app: "web", severity: "page", cluster: "test" },
      annotations: { summary: "web has 3 errors" },
      generatorURL: expect.stringMatching(/^http:\/\/grafana\/explore\?left=/),
    });
    expect(alert?.labels).not.toHaveProperty("secret");
    expect(await alertsOf(server.url)).toMatchObject([{ state: "firing", labels: { app: "web" } }]);
    await setGroup(server.url, {
      name: "g",
      rules: [
        {
          alert: "Errors",
          expr: 'sum by (app) (count_over_time({app="web"} |= "error" [1h])) > 3',
          labels: { severity: "page", secret: "x" },
        },
      ],
    });
    // Alerts whose end was sent are no longer active.
    await waitFor(async () => (await sent()).length === 0);
    await server.kill("SIGTERM");
  });

  needs("prometheus")("writes to a real one, also what was recorded before a kill", async () => {
    const port = await freePort();
    const { folder, flags } = configure({
      remote_write: {
        enabled: true,
        clients: {
          main: {
            url: `http://127.0.0.1:${port}/api/v1/write`,
            queue_config: { batch_send_deadline: "100ms", max_backoff: "200ms" },
          },
        },
      },
    });
    const first = await startServer(folder, flags);
    await setGroup(first.url, {
      name: "g",
      labels: { source: "logs" },
      rules: [{ record: "test:one", expr: "sum(vector(1) + 41)", labels: { team: "blue" } }],
    });
    // No Prometheus takes samples yet.
    const appended = async (url: string) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^loki_ruler_wal_samples_appended_total\S* (\d+)/m.exec(text)?.[1] ?? 0);
    };
    await waitFor(async () => (await appended(first.url)) >= 3);
    const recorded = await appended(first.url);
    await first.kill("SIGKILL");
    const prometheus = await startPrometheus(port);
    const second = await startServer(folder, flags);
    const samples = async () => {
      const params = { query: "test:one[10m]" };
      type Answer = { data: { result: { metric: unknown; values: [number, string][] }[] } };
      return (await getJson<Answer>(prometheus, "/api/v1/query", params)).data.result;
    };
    await waitFor(async () => ((await samples())[0]?.values.length ?? 0) >= recorded + 2);
    const [series] = await samples();
    expect(series?.metric).toEqual({ __name__: "test:one", source: "logs", team: "blue" });
    expect(new Set(series?.values.map(([, value]) => value))).toEqual(new Set(["42"]));
    await second.kill("SIGTERM");
  });

  it("goes on with what an alert has waited when it is killed", async () => {
    const { folder, flags } = configure({ for_grace_period: "1s" });
    const first = await startServer(folder, flags);
    await setGroup(first.url, {
      name: "g",
      rules: [{ alert: "Later", expr: "vector(1)", for: "1h", keep_firing_for: "5m" }],
    });
    await waitFor(async () => (await alertsOf(first.url)).length > 0);
    const [before] = await alertsOf(first.url);
    expect(before).toMatchObject({ state: "pending", labels: { alertname: "Later" } });
    // The state of the last evaluation may not be saved yet; the state of the one before it is.
    type Groups = { data: { groups: { lastEvaluation: string }[] } };
    const evaluatedAt = async () =>
      (await getJson<Groups>(first.url, "/prometheus/api/v1/rules")).data.groups[0]?.lastEvaluation;
    for (let i = 0; i < 3; i++) {
      const seen = await evaluatedAt();
      await waitFor(async () => (await evaluatedAt()) !== seen);
    }
    await first.kill("SIGKILL");
    const second = await startServer(folder, flags);
    await waitFor(async () => (await alertsOf(second.url)).length > 0);
    const [after] = await alertsOf(second.url);
    expect(after?.state).toBe("pending");
    const shiftMs = Date.parse(after?.activeAt ?? "") - Date.parse(before?.activeAt ?? "");
    // The alert went on waiting, and the outage did not count: a new alert would start to wait now.
    expect(shiftMs).toBeLessThan(Date.now() - Date.parse(before?.activeAt ?? "") - 1000);
    await second.kill("SIGTERM");
  });
});
