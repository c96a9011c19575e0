import { describe, expect, it } from "@jest/globals";
import { createLogger } from "../log.js";
import { Metrics } from "../metrics.js";
import { defaultLimits } from "./limits.js";
import { TenantLimits } from "./tenant-limits.js";

const gauge = "loki_runtime_config_last_reload_successful";

function setUp(texts: Record<string, string>) {
  const lines: string[] = [];
  const metrics = new Metrics();
  const pauses: (() => void)[] = [];
  const tenantLimits = new TenantLimits({
    limits: { ...defaultLimits, max_query_series: 77 },
    files: Object.keys(texts),
    ignored: [
      { why: "streams are not split", keys: ["limits_config.shard_streams.*"] },
      { why: "gone", keys: ["limits_config.unordered_*"] },
    ],
    periodMs: 10_000,
    log: createLogger({ target: { write: (line) => void lines.push(line) } }),
    metrics,
    read: async (file) => texts[file] as string,
    sleep: (_, signal) =>
      new Promise((resolve, reject) => {
        pauses.push(resolve);
        signal?.addEventListener("abort", () => reject(signal.reason));
      }),
  });
  /** Lets the watcher look once and waits until it pauses again. */
  const look = async (): Promise<void> => {
    const before = pauses.length;
    pauses.at(-1)?.();
    while (pauses.length === before) await new Promise((resolve) => setImmediate(resolve));
  };
  return { tenantLimits, lines, metrics, texts, look };
}

describe("TenantLimits", () => {
  it("overlays an entry on limits_config, section by section, replacing lists", async () => {
    const { tenantLimits } = setUp({
      "o.yaml": `
overrides:
  a:
    ingestion_rate_mb: 8
    otlp_config: {severity_text_as_label: true}
    log_level_fields: [lvl]
    retention_stream:
      - {selector: '{app="x"}', priority: 1, period: 48h}
  123:
    query_timeout: 1w
  empty:
`,
    });
    await tenantLimits.service.start();
    const a = tenantLimits.of("a");
    expect(a).toMatchObject({
      ingestion_rate_mb: 8,
      ingestion_burst_size_mb: 6,
      max_query_series: 77,
      log_level_fields: ["lvl"],
      retention_stream: [{ selector: '{app="x"}', priority: 1, period: 48 * 3_600_000 }],
    });
    expect(a.otlp_config).toMatchObject({ log_attributes: [], severity_text_as_label: true });
    expect(tenantLimits.of("123").query_timeout).toBe(7 * 86_400_000);
    expect(tenantLimits.of("other").ingestion_rate_mb).toBe(4);
    expect(tenantLimits.of("other")).toBe(tenantLimits.of("else"));
    expect(tenantLimits.tenants()).toEqual(["a", "123", "empty"]);
    await tenantLimits.service.stop();
  });

  it("merges files from left to right, key by key", async () => {
    const { tenantLimits } = setUp({
      "1.yaml": "overrides: {a: {ingestion_rate_mb: 1, max_query_series: 1}}",
      "2.yaml": "overrides: {a: {ingestion_rate_mb: 2}, b: {}}",
    });
    await tenantLimits.load();
    expect(tenantLimits.of("a")).toMatchObject({ ingestion_rate_mb: 2, max_query_series: 1 });
  });

  const bad: [string, string, string][] = [
    ["a bad value", "overrides: {a: {query_timeout: 5x}}", 'unknown unit "x" in duration "5x"'],
    ["an unknown section", "override: {}", 'o.yaml:1:1: unknown key "override"'],
    [
      "a rule for nothing",
      "overrides: {a: {otlp_config: {log_attributes: [{action: drop}]}}}",
      "a rule needs attributes or a regex",
    ],
    [
      "a rule for two things",
      "overrides: {a: {otlp_config: {log_attributes: [{attributes: [a], regex: b}]}}}",
      "a rule has attributes or a regex, not both",
    ],
    [
      "a rule with a bad regex",
      "overrides: {a: {otlp_config: {resource_attributes: {attributes_config: [{regex: '('}]}}}}",
      "error parsing regexp",
    ],
    [
      "a label from a scope",
      "overrides: {a: {otlp_config: {scope_attributes: [{action: index_label, regex: a}]}}}",
      "attributes of a scope cannot be index labels",
    ],
    ["broken YAML", "overrides: {a: [", "o.yaml:1:"],
    ["a list of tenants", "overrides: [a]", "overrides must be a map of tenants"],
    ["a tenant without limits", "overrides: {a: 5}", "a must be a map of limits"],
  ];
  it.each(bad)("does not start with %s", async (_, text, message) => {
    const { tenantLimits } = setUp({ "o.yaml": text });
    await expect(tenantLimits.service.start()).rejects.toThrow(message);
    expect(tenantLimits.service.state).toBe("Failed");
  });

  it("has limits for tenants with names of an object's own", async () => {
    const { tenantLimits } = setUp({
      "o.yaml": "overrides: {__proto__: {ingestion_rate_mb: 7}, toString: {ingestion_rate_mb: 8}}",
    });
    await tenantLimits.service.start();
    const rates = ["__proto__", "toString", "constructor", "ingestion_rate_mb"].map(
      (tenant) => tenantLimits.of(tenant).ingestion_rate_mb,
    );
    expect(rates).toEqual([7, 8, 4, 4]);
  });

  it("keeps the old limits when a reload finds a bad file, and takes the next good one", async () => {
    const { tenantLimits, metrics, lines, texts, look } = setUp({
      "o.yaml": "overrides: {a: {max_query_series: 1}, b: {max_query_series: 2}}",
    });
    await tenantLimits.service.start();
    const a = tenantLimits.of("a");
    texts["o.yaml"] = "overrides: {a: {max_query_series: none}}";
    await look();
    expect(tenantLimits.of("a")).toBe(a);
    expect((await metrics.read()).text).toContain(`${gauge} 0`);
    expect(lines.at(-1)).toContain("is not a number");
    texts["o.yaml"] = "overrides: {a: {max_query_series: 1}, b: {max_query_series: 3}}";
    await look();
    expect(tenantLimits.of("a")).toBe(a);
    expect(tenantLimits.of("b").max_query_series).toBe(3);
    expect((await metrics.read()).text).toContain(`${gauge} 1`);
    await tenantLimits.service.stop();
    expect(tenantLimits.service.state).toBe("Terminated");
  });

  it("warns of keys that do nothing, and starts", async () => {
    const { tenantLimits, lines } = setUp({
      "o.yaml": `
overrides: {a: {ingestion_rate: 1, unordered_writes: true}, b: {retention_period: 1h, per_tenant_override_period: 1s, unordered_writes: 5, shard_streams: {enabled: false}}}
configs: {a: {log_push_request: true}}`,
    });
    await tenantLimits.service.start();
    const warnings = lines.map((line) => JSON.parse(line).warning);
    expect(warnings).toEqual([
      'o.yaml:2:17: unknown key "ingestion_rate" in limits_config; did you mean "ingestion_rate_mb"?',
      "o.yaml:2:87: limits_config.per_tenant_override_period: has an effect in limits_config only",
      "o.yaml:3:1: configs: not used by this version",
      "gone; no effect: limits_config.unordered_writes (o.yaml:2:36)",
      "streams are not split; no effect: limits_config.shard_streams.enabled (o.yaml:2:156)",
    ]);
    await tenantLimits.service.stop();
  });

  it("needs no file", async () => {
    const { tenantLimits, metrics } = setUp({});
    await tenantLimits.service.start();
    expect((await metrics.read()).text).toContain(`${gauge} 1`);
    expect(tenantLimits.of("a").max_query_series).toBe(77);
    await tenantLimits.service.stop();
  });
});
