import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { buildInfo } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { loadConfig } from "../config/load-config.js";
import { buildProcess } from "../process/process.js";

/** Paths of each group, asked with a method that is right for them. */
const groups = {
  push: ["POST /loki/api/v1/push", "POST /service/api/v1/push", "POST /otlp/v1/logs"],
  query: ["GET /loki/api/v1/query_range", "GET /service/api/v1/labels", "GET /loki/api/v1/series"],
  flush: ["POST /flush", "GET /ingester/prepare_shutdown"],
  delete: ["GET /loki/api/v1/delete"],
  status: ["GET /ready", "GET /metrics", "GET /config", "GET /services", "GET /log_level"],
  format: ["GET /loki/api/v1/format_query?query={a=%22b%22}"],
  ring: ["GET /ring"],
  distributors: ["GET /distributor/ring"],
  compactors: ["GET /compactor/ring"],
  rulers: ["GET /ruler/ring"],
  schedulers: ["GET /scheduler/ring"],
  gateways: ["GET /indexgateway/ring"],
  patterns: ["GET /pattern/ring"],
  ui: ["GET /ui/config.json"],
};
type Group = keyof typeof groups;

/** What each target answers beside `status` and `format`. */
const exposed: Readonly<Record<string, readonly Group[]>> = {
  all: [
    ...(["push", "query", "flush", "delete", "ring"] as const),
    ...(["distributors", "compactors", "rulers", "schedulers", "gateways", "patterns"] as const),
    "ui",
  ],
  write: ["push", "flush", "ring", "distributors"],
  read: ["query", "ui"],
  backend: ["delete", "compactors", "rulers", "schedulers", "gateways", "patterns"],
  distributor: ["push", "distributors"],
  ingester: ["flush", "ring"],
  querier: ["query", "ui"],
  "query-frontend": ["query", "ui"],
  "query-scheduler": ["schedulers"],
  "index-gateway": ["gateways"],
  compactor: ["delete", "compactors"],
  ruler: ["rulers"],
  "pattern-ingester": ["patterns"],
};

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skald-exposure-"));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

/** Groups of which a process of a target knows every path; throws where it knows some of one. */
async function groupsOf(target: string): Promise<Group[]> {
  const loaded = loadConfig(
    [
      ...[`-target=${target}`, `-common.path-prefix=${join(directory, target)}`],
      ...["-server.http-listen-address=127.0.0.1", "-server.http-listen-port=0"],
      ...["-server.grpc-listen-address=127.0.0.1", "-server.grpc-listen-port=0"],
      "-pattern-ingester.enabled=true",
    ],
    {},
  );
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  let port = 0;
  const write = (line: string) => {
    port = JSON.parse(line).port ?? port;
  };
  const log = createLogger({ target: { write } });
  const process = buildProcess({ config: loaded.config, log, build: buildInfo() });
  await process.start();
  const knows = async (call: string) => {
    const [method, path] = call.split(" ") as [string, string];
    return (await fetch(`http://127.0.0.1:${port}${path}`, { method })).status !== 404;
  };
  try {
    const found: Group[] = [];
    for (const [group, calls] of Object.entries(groups)) {
      const known = await Promise.all(calls.map(knows));
      if (known.some((one) => one !== known[0]))
        throw new Error(`${target} knows half of ${group}`);
      if (known[0]) found.push(group as Group);
    }
    return found;
  } finally {
    await process.stop();
  }
}

describe("a target", () => {
  it.each(Object.keys(exposed))("%s answers what it has, and nothing else", async (target) => {
    const found = await groupsOf(target);
    expect(found.sort()).toEqual(["status", "format", ...exposed[target]!].sort());
  });
});
