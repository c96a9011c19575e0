import { describe, expect, it } from "@jest/globals";
import { buildInfo } from "./buildinfo.js";
import { Metrics } from "./metrics.js";

describe("Metrics", () => {
  it("tells the first tenants apart and adds up all others", async () => {
    const metrics = new Metrics({ maxTenants: 2 });
    const lines = metrics.counter("lines_total", "Lines.", ["tenant", "reason"]);
    const seconds = metrics.histogram("wait_seconds", "Time.", ["user"], [1]);
    for (let i = 0; i < 5; i++) {
      lines.inc({ tenant: `t${i}`, reason: "late" }, i);
      seconds.observe({ user: `t${i}` }, i);
    }
    for (let round = 0; round < 2; round++) {
      const { text } = await metrics.read();
      const shown = text.split("\n").filter((line) => !line.startsWith("#") && line !== "");
      expect(shown.filter((line) => !line.includes("bucket"))).toEqual([
        'loki_lines_total{tenant="t0",reason="late"} 0',
        'loki_lines_total{tenant="t1",reason="late"} 1',
        'loki_lines_total{tenant="other tenants",reason="late"} 9',
        'loki_wait_seconds_sum{user="t0"} 0',
        'loki_wait_seconds_count{user="t0"} 1',
        'loki_wait_seconds_sum{user="t1"} 1',
        'loki_wait_seconds_count{user="t1"} 1',
        'loki_wait_seconds_sum{user="other tenants"} 9',
        'loki_wait_seconds_count{user="other tenants"} 3',
      ]);
      expect(shown).toContain('loki_wait_seconds_bucket{le="+Inf",user="other tenants"} 3');
    }
  });

  it("prefixes names and gives the same metric when asked again", async () => {
    const metrics = new Metrics();
    metrics
      .counter("discarded_samples_total", "Refused.", ["tenant", "reason"])
      .inc({ tenant: "a", reason: "x" }, 2);
    metrics
      .counter("discarded_samples_total", "Refused.", ["reason", "tenant"])
      .inc({ tenant: "a", reason: "x" }, 3);
    metrics.gaugeOf("queue_length", "Now.", () => 7);
    const { text, contentType } = await metrics.read();
    expect(text).toContain('loki_discarded_samples_total{tenant="a",reason="x"} 5');
    expect(text).toContain("loki_queue_length 7");
    expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
  });

  it("shows what was added to tallies, each time once", async () => {
    const metrics = new Metrics();
    const tallies = metrics.tallies("bytes_total", "Bytes.", ["tenant"]);
    const [a, again, b] = ["a", "a", "b"].map((tenant) => tallies({ tenant }));
    a!.add(2);
    a!.add(3);
    again!.add(1);
    b!.add(0);
    const lines = ['loki_bytes_total{tenant="a"} 6', 'loki_bytes_total{tenant="b"} 0'];
    for (const _ of [1, 2]) {
      const { text } = await metrics.read();
      expect(text.split("\n").filter((line) => !line.startsWith("#") && line !== "")).toEqual(
        lines,
      );
    }
    a!.add(4);
    expect(await metrics.sums("bytes_total", "tenant")).toEqual(
      new Map([
        ["a", 10],
        ["b", 0],
      ]),
    );
  });

  it("refuses one name with two meanings", () => {
    const metrics = new Metrics();
    metrics.counter("a_total", "A.");
    expect(() => metrics.gauge("a_total", "A.")).toThrow("metric a_total is already a counter");
    expect(() => metrics.counter("a_total", "A.", ["x"])).toThrow("metric a_total is already");
  });

  it("uses the buckets of request durations and the namespace given", async () => {
    const metrics = new Metrics({ namespace: "skald" });
    metrics.histogram("request_duration_seconds", "Time.", ["route"]).observe({ route: "r" }, 0.3);
    const { text } = await metrics.read();
    expect(text).toContain('skald_request_duration_seconds_bucket{le="0.25",route="r"} 0');
    expect(text).toContain('skald_request_duration_seconds_bucket{le="0.5",route="r"} 1');
    expect(text).toContain('skald_request_duration_seconds_bucket{le="100",route="r"} 1');
  });

  it("answers OpenMetrics when asked, and the plain text after that", async () => {
    const metrics = new Metrics();
    metrics.counter("lines_total", "Lines.").inc();
    metrics.gauge("streams", "Streams.").set(2);
    const { text, contentType } = await metrics.read("application/openmetrics-text; version=1.0.0");
    expect(contentType).toContain("application/openmetrics-text");
    expect(text).toBe(
      "# HELP loki_lines Lines.\n# TYPE loki_lines counter\nloki_lines_total 1\n" +
        "# HELP loki_streams Streams.\n# TYPE loki_streams gauge\nloki_streams 2\n# EOF\n",
    );
    expect((await metrics.read()).text).toContain("# TYPE loki_lines_total counter");
  });

  it("tells the build and the process", async () => {
    const metrics = new Metrics();
    metrics.collectProcess(buildInfo({ SKALD_REVISION: "abc", SKALD_BRANCH: "main" }));
    const { text } = await metrics.read();
    expect(text).toMatch(
      /loki_build_info\{version="3\.\d+\.\d+",revision="abc",branch="main",goversion="node.*"\} 1/,
    );
    expect(text).toContain("process_cpu_seconds_total");
  });
});

describe("buildInfo", () => {
  it("takes the product version from package.json and is silent about what it does not know", () => {
    const build = buildInfo({ SKALD_REVISION: "" });
    expect(build.productVersion).toMatch(/^\d+\.\d+\.\d+/);
    expect([build.revision, build.branch, build.buildUser, build.buildDate]).toEqual([
      "",
      "",
      "",
      "",
    ]);
  });
});
