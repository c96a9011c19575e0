import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startProcess, type TestProcess } from "./testing/start-process.js";

/** Between two looks at what the ruler does by itself. */
const pollMs = 20;
const names = ["__proto__", "constructor", "hasOwnProperty", "toString"];
/** As text, since a literal with `__proto__` in it has another prototype. */
const textOf = (prefix: string) =>
  `{${names.map((name, i) => `"${name}":"${prefix}${i}"`).join(",")}}`;
const fieldsOf = (prefix: string) => textOf(prefix).slice(1, -1);

let server: TestProcess;
const nowMs = Date.now();
const ns = (beforeMs: number) => `${nowMs - beforeMs}000000`;

beforeAll(async () => {
  server = await startProcess([
    ...["-target=all", "-auth.enabled", "-querier.multi-tenant-queries-enabled"],
    ...["-frontend.support-parquet-encoding", "-pattern-ingester.enabled"],
    ...["-compactor.retention-enabled", "-compactor.delete-request-store=filesystem"],
  ]);
});

afterAll(async () => {
  await server.stop();
});

async function ask(
  tenant: string,
  path: string,
  params: Record<string, string> = {},
  init: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<string> {
  const response = await fetch(`${server.url}${path}?${new URLSearchParams(params)}`, {
    ...init,
    headers: { "content-type": "application/json", "x-scope-orgid": tenant, ...init.headers },
  });
  const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return text;
}

async function push(tenant: string): Promise<void> {
  const post = (path: string, body: string) => ask(tenant, path, {}, { method: "POST", body });
  const streams = [
    `{"stream":{"app":"odd",${fieldsOf("v")}},"values":[["${ns(2000)}","one"]]}`,
    `{"stream":{"app":"odd","__proto__":"other"},"values":[["${ns(2000)}","two"]]}`,
    `{"stream":{"app":"meta"},"values":[["${ns(2000)}","three",${textOf("m")}]]}`,
    `{"stream":{"app":"json"},"values":[["${ns(2000)}",${JSON.stringify(textOf("j"))}]]}`,
  ];
  await post("/loki/api/v1/push", `{"streams":[${streams}]}`);
  const labels = names.map((name, i) => `${name}=\\"l${i}\\"`).join(", ");
  const entry = `{"ts":"${new Date(nowMs - 2000).toISOString()}","line":"four"}`;
  await post(
    "/api/prom/push",
    `{"streams":[{"labels":"{app=\\"legacy\\", ${labels}}","entries":[${entry}]}]}`,
  );
  const attributes = names.map((key, i) => `{"key":"${key}","value":{"stringValue":"o${i}"}}`);
  const record = `{"timeUnixNano":"${ns(2000)}","body":{"stringValue":"five"},"attributes":[${attributes}]}`;
  const resource = `{"attributes":[{"key":"service.name","value":{"stringValue":"otlp"}}]}`;
  await post(
    "/otlp/v1/logs",
    `{"resourceLogs":[{"resource":${resource},"scopeLogs":[{"logRecords":[${record}]}]}]}`,
  );
}

const range = { start: ns(3_600_000), end: ns(-60_000) };
const counted = 'count_over_time({app="odd"}[1h])';
const v1 = "/loki/api/v1";
/** Path, parameters, and texts that the answer holds. */
const answers: readonly (readonly [string, Record<string, string>, readonly string[]])[] = [
  [`${v1}/query_range`, { query: '{app="odd"}', ...range }, names.map((n, i) => `"${n}":"v${i}"`)],
  [`${v1}/query_range`, { query: '{__proto__="other"}', ...range }, ['{"__proto__":"other"']],
  [`${v1}/query_range`, { query: '{app="meta"}', ...range }, names.map((n, i) => `"${n}":"m${i}"`)],
  [
    `${v1}/query_range`,
    { query: '{app="json"} | json', ...range },
    names.map((n, i) => `"${n}":"j${i}"`),
  ],
  [
    `${v1}/query_range`,
    { query: '{app="legacy"}', ...range },
    names.map((n, i) => `"${n}":"l${i}"`),
  ],
  [
    `${v1}/query_range`,
    { query: '{service_name="otlp"}', ...range },
    names.map((n, i) => `"${n}":"o${i}"`),
  ],
  [
    `${v1}/query_range`,
    { query: '{app="json"} | json | __proto__="j0" | label_format a=__proto__', ...range },
    ['"a":"j0"'],
  ],
  [
    `${v1}/query_range`,
    { query: `sum by (__proto__) (${counted})`, ...range, step: "3600" },
    ['"metric":{"__proto__":"other"}', '"metric":{"__proto__":"v0"}'],
  ],
  [
    `${v1}/query`,
    { query: `sum by (__proto__, constructor, valueOf) (${counted})`, time: ns(0) },
    ['"metric":{"__proto__":"other"}', '"metric":{"__proto__":"v0","constructor":"v1"}'],
  ],
  [
    "/api/prom/query",
    { query: '{app="odd"}', ...range },
    ['{__proto__=\\"v0\\", app=\\"odd\\", constructor=\\"v1\\"'],
  ],
  [
    `${v1}/series`,
    { "match[]": '{app="odd"}', ...range },
    ['{"__proto__":"other"', ...names.map((n, i) => `"${n}":"v${i}"`)],
  ],
  [`${v1}/labels`, range, names.map((n) => `"${n}"`)],
  ...names.map((n, i) => [`${v1}/label/${n}/values`, range, [`"l${i}"`, `"v${i}"`]] as const),
  [`${v1}/index/stats`, { query: '{__proto__="other"}', ...range }, ['"streams":1']],
  [
    `${v1}/index/volume`,
    { query: '{app="odd"}', targetLabels: "__proto__,constructor", ...range },
    ['"metric":{"__proto__":"v0","constructor":"v1"}'],
  ],
  [
    `${v1}/index/volume`,
    { query: '{app="odd"}', aggregateBy: "labels", ...range },
    names.map((n) => `"metric":{"${n}":""}`),
  ],
  [
    `${v1}/index/volume_range`,
    { query: '{__proto__=~".+"}', step: "3600", ...range },
    ['"metric":{"__proto__":"other"}', '"metric":{"__proto__":"v0"}'],
  ],
  [`${v1}/detected_labels`, range, names.map((n) => `"label":"${n}"`)],
  [
    `${v1}/detected_fields`,
    { query: '{app=~"json|meta"}', ...range },
    names.map((n) => `"label":"${n}"`),
  ],
  ...names.map(
    (n, i) =>
      [
        `${v1}/detected_field/${n}/values`,
        { query: '{app=~"json|meta"}', ...range },
        [`"j${i}"`, `"m${i}"`],
      ] as const,
  ),
];

describe.each(["odd", "constructor", "__proto__"])("tenant %s has labels", (tenant) => {
  beforeAll(() => push(tenant));

  it.each(answers.map((one, i) => [i, ...one] as const))(
    "in answer %i: %s",
    async (_, path, params, want) => {
      const text = await ask(tenant, path, params);
      for (const part of want) expect(text).toContain(part);
    },
  );

  it("row by row", async () => {
    const headers = { "x-loki-response-encoding-flags": "categorize-labels" };
    const params = { query: '{app=~"json|meta"} | json', ...range };
    const text = await ask(tenant, `${v1}/query_range`, params, { headers });
    expect(text).toContain(`"parsed":${textOf("j")}`);
    expect(text).toContain('"structuredMetadata":{"__proto__":"m0","constructor":"m1"');
  });

  it("in Parquet", async () => {
    const headers = { accept: "application/vnd.apache.parquet" };
    const params = { query: '{app="odd"}', ...range };
    const text = await ask(tenant, `${v1}/query_range`, params, { headers });
    for (const name of names) expect(text).toContain(name);
  });

  it("with those of another tenant", async () => {
    const query = `sum by (__proto__, __tenant_id__) (${counted})`;
    const text = await ask(`${tenant}|nobody`, `${v1}/query`, { query, time: ns(0) });
    expect(text).toContain(`"metric":{"__proto__":"v0","__tenant_id__":"${tenant}"}`);
  });

  it("in rules and alerts", async () => {
    const rule = `name: __proto__
interval: 1s
rules:
  - alert: toString
    expr: sum by (__proto__, constructor) (${counted}) > 0
    labels: {__proto__: "of {{ $labels.constructor }}", constructor: c}
    annotations: {__proto__: "was {{ $labels.__proto__ }}", toString: t}
`;
    const headers = { "content-type": "application/yaml" };
    await ask(tenant, `${v1}/rules/constructor`, {}, { method: "POST", body: rule, headers });
    expect(await ask(tenant, `${v1}/rules`)).toMatch(/^constructor:\n/);
    expect(await ask(tenant, `${v1}/rules/constructor/__proto__`)).toContain("__proto__: of {{");
    let text = "";
    while (!text.includes("alertname")) {
      await pause(pollMs);
      text = await ask(tenant, "/prometheus/api/v1/alerts");
    }
    expect(text).toContain(
      '"labels":{"__proto__":"of v1","alertname":"toString","constructor":"c"},"annotations":{"__proto__":"was v0","toString":"t"}',
    );
    expect(await ask(tenant, "/prometheus/api/v1/rules")).toContain(
      '"labels":{"__proto__":"of {{ $labels.constructor }}","constructor":"c"}',
    );
  });

  it("in tails and delete requests", async () => {
    const query = encodeURIComponent('{app="json"} | json');
    const url = `${server.url.replace("http", "ws")}${v1}/tail?query=${query}`;
    const socket = new WebSocket(url, { headers: { "x-scope-orgid": tenant } } as never);
    const text = await new Promise((resolve, reject) => {
      socket.onmessage = ({ data }) => resolve(data);
      socket.onerror = reject;
    });
    socket.close();
    expect(text).toContain('"stream":{"__proto__":"j0","app":"json","constructor":"j1"');
    const deleted = { query: '{__proto__="other"}', start: "1700000000" };
    await ask(tenant, `${v1}/delete`, deleted, { method: "POST" });
    expect(await ask(tenant, `${v1}/delete`)).toContain('{__proto__=\\"other\\"}');
    const left = await ask(tenant, `${v1}/query`, { query: `sum(${counted})`, time: ns(0) });
    expect(left).toContain(',"1"]');
  });
});
