import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { buildInfo } from "@skald/runtime";
import { type LeafNode, type SectionNode, Settings } from "@skald/runtime/config";
import { createLogger } from "@skald/runtime/log";
import { startTracing } from "@skald/runtime/trace-export";
import { buildProcess } from "../process/process.js";
import { openLog } from "../process/run.js";
import { bucketPlaceOf } from "../wiring/modules/store.js";
import { checkSettings } from "./check.js";
import { deriveSettings } from "./derive.js";
import { configRoot, loadConfig } from "./load-config.js";
import type { Config } from "./root.js";

/**
 * What the program reads of its configuration is not looked for in its text, where one name stands for many keys: a whole
 * process runs on a configuration that notes each key when it is read.
 */
const read = new Set<string>();
const leaves = [...new Settings(configRoot).leaves.values()];
let directory: string;
/** Between two looks at what a process does by itself; asking without end would take the processors from it. */
const pollMs = 20;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skald-effect-"));
  await writeFile(join(directory, "config.yaml"), JSON.stringify({ auth_enabled: false, ruler }));
  const log = openLog(configFor("all"));
  const { tracing } = configFor("all");
  await startTracing(tracing.enabled, { env: {}, serviceName: "", version: "", log });
  await useAll(configFor("all"));
  await useAll(configFor("read,write,backend"));
  // Both processes keep their data in a directory; this reads the keys of a bucket.
  bucketPlaceOf(configFor("all"));
}, 60_000);

afterAll(() => rm(directory, { recursive: true, force: true }));

const ruler = {
  evaluation_interval: "50ms",
  evaluation: { mode: "remote", query_frontend: { address: "http://127.0.0.1:1" } },
  remote_write: { enabled: true, clients: { a: { url: "http://127.0.0.1:1" } } },
};

/** A configuration that notes what is read of it. */
function configFor(target: string): Config {
  const loaded = loadConfig(
    [
      `-config.file=${join(directory, "config.yaml")}`,
      `-target=${target}`,
      `-common.path-prefix=${join(directory, target)}`,
      "-server.http-listen-address=127.0.0.1",
      "-server.http-listen-port=0",
      "-server.grpc-listen-address=127.0.0.1",
      "-server.grpc-listen-port=0",
      "-server.cluster-validation.grpc.enabled",
      // Nobody is called over a connection here.
      "-ingester.client.tls-enabled",
      "-pattern-ingester.client.tls-enabled",
      "-frontend.grpc-client-config.tls-enabled",
      "-querier.scheduler-grpc-client.tls-enabled",
      "-tsdb.shipper.index-gateway-client.grpc.tls-enabled",
      "-ruler.client.tls-enabled",
      "-ruler.enable-sharding",
      "-ruler.sharding-strategy=shuffle-sharding",
      "-server.worker-threads=1",
      "-ingester.flush-check-period=50ms",
      "-compactor.retention-enabled",
      "-compactor.delete-request-store=filesystem",
      "-compactor.compaction-interval=50ms",
      "-pattern-ingester.enabled=true",
    ],
    {},
  );
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  return noting(configRoot, loaded.config) as Config;
}

/** The values of a section; reading a key is noted. */
function noting(section: SectionNode, values: object): object {
  const sections = new Map<string, object>();
  for (const [key, child] of section.children)
    if (child.kind === "section")
      sections.set(key, noting(child, values[key as keyof object] as object));
  return new Proxy(values, {
    get: (target, key) => {
      const child = typeof key === "string" ? section.children.get(key) : undefined;
      if (child?.kind === "section") return sections.get(key as string);
      if (child !== undefined) read.add(child.path);
      return Reflect.get(target, key);
    },
  });
}

/** Starts a process, takes it through a push and queries of each kind, and ends it. */
async function useAll(config: Config): Promise<void> {
  let port = 0;
  const write = (line: string) => {
    port = JSON.parse(line).port ?? port;
  };
  const log = createLogger({ target: { write } });
  const process = buildProcess({ config, log, build: buildInfo() });
  await process.start();
  const url = `http://127.0.0.1:${port}/loki/api/v1`;
  const values = [[`${Date.now()}000000`, '{"msg":"x"}', { trace: "1" }]];
  const push = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ streams: [{ stream: { app: "a" }, values }] }),
  };
  const statuses: number[] = [];
  try {
    statuses.push((await fetch(`${url}/push`, push)).status);
    const otlp = { ...push, body: otlpBody(Date.now()) };
    statuses.push((await fetch(`http://127.0.0.1:${port}/otlp/v1/logs`, otlp)).status);
    const line = { method: "POST", body: '{"app":"a"}' };
    statuses.push((await fetch(`http://127.0.0.1:${port}/insert/jsonline`, line)).status);
    for (const path of [
      'query_range?query={app="a"}',
      'query?query=count_over_time({app="a"}[1m])',
      "labels",
      'series?match[]={app="a"}',
    ])
      statuses.push((await fetch(`${url}/${path}`)).status);
    const group = '{"name":"g","rules":[{"alert":"A","expr":"vector(1)"}]}';
    const { status } = await fetch(`${url}/rules/ns`, { method: "POST", body: group });
    statuses.push(status);
    const rules = `http://127.0.0.1:${port}/prometheus/api/v1/rules`;
    while (!(await (await fetch(rules)).text()).includes('"health":"err"')) await pause(pollMs);
    await openTail(`ws://127.0.0.1:${port}/loki/api/v1/tail?query={app="a"}`);
    statuses.push((await fetch(`http://127.0.0.1:${port}/flush`, { method: "POST" })).status);
    const deletion = `${url}/delete?query={app="b"}&start=1700000000`;
    statuses.push((await fetch(deletion, { method: "POST" })).status);
    const before = await runs(port);
    // The first may have begun before the flush ended.
    while ((await runs(port)) < before + 2) await pause(pollMs);
  } finally {
    await process.stop();
  }
  expect(statuses).toEqual([204, 204, 204, 200, 200, 200, 200, 202, 204, 204]);
}

/** How often retention was applied. */
async function runs(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const name = "boltdb_shipper_compact_tables_operation_total";
  return Number(new RegExp(`${name}\\{status="success"\\} (\\d+)`).exec(text)?.[1] ?? 0);
}

/** Resolves with the history of a tail. */
async function openTail(url: string): Promise<void> {
  const tail = new WebSocket(url);
  await new Promise((resolve, reject) => {
    tail.onmessage = resolve;
    tail.onerror = reject;
  });
  tail.close();
}

function otlpBody(ms: number): string {
  const record = { timeUnixNano: `${ms}000000`, body: { stringValue: "x" }, severityText: "INFO" };
  return JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [record] }] }] });
}

/** The values of all keys that the program reads, and what is wrong with them, when a key is set to something new. */
function valuesWith(changed?: LeafNode): unknown[] {
  const settings = new Settings(configRoot);
  settings.give("compactor.retention_enabled", { value: true, origin: "test" });
  settings.give("limits_config.per_tenant_override_config", { value: "o.yaml", origin: "test" });
  settings.give("common.path_prefix", { value: "p", origin: "test" });
  if (changed !== undefined)
    settings.give(changed.path, { value: anotherValue(changed), origin: "test" });
  deriveSettings(settings);
  const { problems } = checkSettings(settings, () => false);
  return [...[...read].sort().map((path) => settings.get(path)), problems];
}

function anotherValue({ note }: LeafNode): unknown {
  const { defaultValue: value, type, kind } = note;
  if (kind === "boolean") return !value;
  if (typeof value === "number") return value + 1;
  if (Array.isArray(value)) return [...value, kind === "sections" ? {} : "another"];
  if (typeof value === "object") return { another: {} };
  return type.split(" | ").findLast((word) => word !== value) ?? "another";
}

describe("every key", () => {
  it("is read by the program, or changes one that is, or is checked, or is refused", () => {
    const before = JSON.stringify(valuesWith());
    const silent = leaves
      .filter(({ path, note }) => !read.has(path) && note.refused === undefined)
      .filter((leaf) => JSON.stringify(valuesWith(leaf)) === before);
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it("that is refused is not read by the program", () => {
    const refused = leaves.filter(({ note }) => note.refused !== undefined);
    const paths = refused.map(({ path }) => path);
    expect(paths).toEqual(["server.cluster_validation.http.enabled", "lbac.enabled", "auth.type"]);
    expect(paths.filter((path) => read.has(path))).toEqual([]);
  });
});
