import { describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { type BuildInfo, buildInfo, type NamedState } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import { configToYaml, loadConfig } from "../config/load-config.js";
import { statusRoutes } from "./status-routes.js";

const yaml = `
auth_enabled: false
common:
  path_prefix: /d
schema_config:
  configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}]
storage_config:
  aws:
    access_key_id: who-asks
    secret_access_key: hush-hush
server:
  log_level: warn
`;

interface Asked {
  readonly status: number;
  readonly type: string | undefined;
  readonly text: string;
}

/** Calls a route of a process in these states. */
function makeStatus(
  states: readonly NamedState[] = [{ name: "ingester", state: "Running" }],
  unready?: () => string | undefined,
  complaints: readonly string[] = [],
) {
  const loaded = loadConfig(["-config.file=c.yaml"], {}, { readFile: () => yaml });
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  const build: BuildInfo = buildInfo({ SKALD_REVISION: "abc", SKALD_BRANCH: "main" });
  const metrics = new Metrics();
  metrics.collectProcess(build);
  const log = createLogger({ target: { write: () => undefined } });
  const made: string[] = [];
  const routes = statusRoutes({
    build,
    log,
    metrics,
    services: () => states,
    ...(unready === undefined ? {} : { unready }),
    complaints: () => complaints,
    configYaml: (mode) => {
      made.push(mode);
      return configToYaml(loaded.config, { mode });
    },
  });
  const ask = async (method: string, path: string, params = "", accept = ""): Promise<Asked> => {
    const route = routes.find((r) => r.path === path && r.methods.includes(method));
    if (route === undefined) throw new Error(`no route for ${method} ${path}`);
    const request: HttpRequest = {
      method,
      path,
      variables: {},
      headers: { accept },
      params: new URLSearchParams(params),
      body: new Uint8Array(0),
      signal: new AbortController().signal,
    };
    const answer: HttpResponse = await route.handler(request);
    return {
      status: answer.status,
      type: answer.headers?.["content-type"],
      text: String(answer.body ?? ""),
    };
  };
  return { ask, log, metrics, made };
}

const plain = "text/plain; charset=utf-8";

describe("/ready", () => {
  it("is 200 when everything runs", async () => {
    const { ask } = makeStatus();
    expect(await ask("GET", "/ready")).toEqual({ status: 200, type: plain, text: "ready\n" });
  });

  it("says what is slow to those who ask for more, and is ready all the same", async () => {
    const { ask } = makeStatus(undefined, undefined, ["disk slow: a sync took 2.0s"]);
    expect((await ask("GET", "/ready")).text).toBe("ready\n");
    const text = "ready\ndisk slow: a sync took 2.0s\n";
    expect(await ask("GET", "/ready", "verbose")).toEqual({ status: 200, type: plain, text });
  });

  it("is 503 with the reason while what runs can do no work", async () => {
    let reason: string | undefined = "a directory cannot be written";
    const { ask } = makeStatus(undefined, () => reason);
    const text = "a directory cannot be written\n";
    expect(await ask("GET", "/ready")).toEqual({ status: 503, type: plain, text });
    reason = undefined;
    expect(await ask("GET", "/ready")).toMatchObject({ status: 200 });
  });

  it("is 503 and counts the states until then", async () => {
    const { ask } = makeStatus([
      { name: "server", state: "Running" },
      { name: "ingester", state: "Starting" },
      { name: "querier", state: "New" },
      { name: "distributor", state: "New" },
    ]);
    expect(await ask("GET", "/ready")).toEqual({
      status: 503,
      type: plain,
      text: "Some services are not Running:\nRunning: 1\nStarting: 1\nNew: 2\n",
    });
  });
});

describe("/services", () => {
  it("lists each with its state", async () => {
    const { ask } = makeStatus([
      { name: "server", state: "Running" },
      { name: "ingester", state: "Stopping" },
    ]);
    expect(await ask("GET", "/services")).toEqual({
      status: 200,
      type: plain,
      text: "server => Running\ningester => Stopping\n",
    });
  });
});

describe("/config", () => {
  it("shows everything that holds, secrets masked", async () => {
    const { status, type, text } = await makeStatus().ask("GET", "/config");
    expect([status, type]).toEqual([200, plain]);
    expect(text).toMatch(/^auth_enabled: false$/m);
    expect(text).toMatch(/^limits_config:$/m);
    expect(text).toMatch(/^ {4}secret_access_key: "?\*{8}"?$/m);
    expect(text).toMatch(/^ {4}access_key_id: "?\*{8}"?$/m);
    expect(text).not.toContain("who-asks");
    expect(text).not.toContain("hush-hush");
  });

  it.each(["diffs", "diff"])("mode=%s shows what differs from the defaults", async (mode) => {
    const { text } = await makeStatus().ask("GET", "/config", `mode=${mode}`);
    expect(text).toMatch(/^ {2}log_level: warn$/m);
    expect(text).toContain("********");
    expect(text).not.toContain("hush-hush");
    expect(text).not.toContain("http_listen_port");
  });

  it("mode=defaults shows what would hold", async () => {
    const { text } = await makeStatus().ask("GET", "/config", "mode=defaults");
    expect(text).toMatch(/^auth_enabled: true$/m);
    expect(text).toMatch(/^ {2}log_level: info$/m);
    expect(text).not.toContain("********");
  });

  it("is made once for each mode", async () => {
    const { ask, made } = makeStatus();
    for (const mode of ["", "mode=diffs", "", "mode=diff"]) await ask("GET", "/config", mode);
    expect(made).toEqual(["full", "diffs"]);
  });

  it("refuses other modes", async () => {
    const error = await makeStatus()
      .ask("GET", "/config", "mode=all")
      .catch((thrown: unknown) => thrown);
    expect(errorCodeOf(error)).toBe("invalid_argument");
    expect((error as Error).message).toBe('unknown mode "all": use diffs or defaults');
  });
});

describe("/log_level", () => {
  it("tells and sets it", async () => {
    const { ask, log } = makeStatus();
    const json = "application/json; charset=UTF-8";
    expect(await ask("GET", "/log_level")).toEqual({
      status: 200,
      type: json,
      text: '{"message":"Current log level is info"}\n',
    });
    expect(await ask("POST", "/log_level", "log_level=debug")).toEqual({
      status: 200,
      type: json,
      text: '{"status":"success","message":"Log level set to debug"}\n',
    });
    expect(log.level()).toBe("debug");
    expect((await ask("GET", "/log_level")).text).toContain("is debug");
  });

  it.each([
    ["log_level=loud", 'unrecognized log level "loud"'],
    ["log_level=INFO", 'unrecognized log level "INFO"'],
    ["", 'unrecognized log level ""'],
  ])("refuses %j", async (params, message) => {
    const { ask, log } = makeStatus();
    const { status, text } = await ask("POST", "/log_level", params);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toEqual({ status: "failed", message });
    expect(log.level()).toBe("info");
  });
});

describe("/metrics", () => {
  it("is Prometheus text with the build, or OpenMetrics", async () => {
    const { ask } = makeStatus();
    const text = await ask("GET", "/metrics");
    expect(text.type).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(text.text).toMatch(/^loki_build_info\{version="3\.\d+\.\d+",revision="abc",.*\} 1$/m);
    const open = await ask("GET", "/metrics", "", "application/openmetrics-text;version=1.0.0");
    expect(open.type).toMatch(/^application\/openmetrics-text/);
    expect(open.text).toMatch(/# EOF\n$/);
  });
});

describe("buildinfo", () => {
  it.each(["/service/api/v1/status/buildinfo", "/loki/api/v1/status/buildinfo"])(
    "%s tells a version that clients switch features on by",
    async (path) => {
      const { status, text } = await makeStatus().ask("GET", path);
      const body = JSON.parse(text) as Record<string, string>;
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual([
        "version",
        "revision",
        "branch",
        "buildUser",
        "buildDate",
        "goVersion",
      ]);
      expect(Number(body.version?.split(".")[0])).toBeGreaterThanOrEqual(3);
      expect(body).toMatchObject({ revision: "abc", branch: "main" });
    },
  );
});
