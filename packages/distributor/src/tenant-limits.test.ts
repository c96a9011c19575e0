import { describe, expect, it } from "@jest/globals";
import { jsonPush, makeHarness, testNowMs, testNowNs } from "./testing/harness.js";

const dayMs = 86_400_000;
const one = jsonPush({ app: "a" }, [[0, "x"]]);

describe("labels", () => {
  it.each<[string, Record<string, unknown>, string]>([
    ["service", { service: "s", app: "a" }, '{app="a", service="s", service_name="s"}'],
    ["job", { job: "j" }, '{job="j", service_name="j"}'],
    ["nothing to go by", { region: "eu" }, '{region="eu", service_name="unknown_service"}'],
    ["its own name", { service_name: "mine", app: "a" }, '{app="a", service_name="mine"}'],
    ["an empty own name", { service_name: "", app: "a" }, '{app="a", service_name="a"}'],
    ["no labels", {}, '{service_name="unknown_service"}'],
    ["only empty values", { app: "" }, '{service_name="unknown_service"}'],
    ["a number", { app: 5 }, '{app="5", service_name="5"}'],
    [
      "aggregated metrics",
      { __aggregated_metric__: "x", app: "a" },
      '{__aggregated_metric__="x", app="a"}',
    ],
    ["patterns", { __pattern__: "x", app: "a" }, '{__pattern__="x", app="a"}'],
    ["a metric name", { __name__: "x" }, '{__name__="x", service_name="unknown_service"}'],
    ["a line break", { app: "a\nb" }, '{app="a\\nb", service_name="a\\nb"}'],
  ])("service name from %s", async (_, labels, want) => {
    const { push, stored } = makeHarness();
    expect((await push(jsonPush(labels, [[0, "x"]]))).status).toBe(204);
    expect(stored()[0]?.stream).toBe(want);
  });

  it("are known until the limits change", async () => {
    const harness = makeHarness();
    await harness.push(one);
    await harness.push(one);
    harness.limits = { ...harness.limits, discover_service_name: [] };
    await harness.push(one);
    expect(harness.stored().map((row) => row.stream)).toEqual([
      '{app="a", service_name="a"}',
      '{app="a", service_name="a"}',
      '{app="a"}',
    ]);
  });

  it("of a backfill carry its shard, and its rows may be old", async () => {
    const { push, stored } = makeHarness();
    const old = jsonPush({ app: "a" }, [[-30 * dayMs, "x"]]);
    expect((await push(old, { backfillShard: "7" })).status).toBe(204);
    expect((await push(old, { backfillShard: "8" })).status).toBe(204);
    expect((await push(old)).status).toBe(400);
    expect(stored().map((row) => row.stream)).toEqual([
      '{__backfill__="true", __backfill_shard__="7", app="a", service_name="a"}',
      '{__backfill__="true", __backfill_shard__="8", app="a", service_name="a"}',
    ]);
  });
});

describe("the rate limit", () => {
  const limits = { ingestion_rate_mb: 10 / 1048576, ingestion_burst_size_mb: 20 / 1048576 };
  const text = (bytes: number) =>
    `ingestion rate limit exceeded for user t1 (limit: 10 bytes/sec) while attempting to ingest '1' lines totaling '${bytes}' bytes, reduce log volume or contact your Loki administrator to see if the limit can be increased`;

  it("takes all of a push or nothing, and says when to come back", async () => {
    const { push, stored, clock, counter } = makeHarness(limits);
    const fifteen = jsonPush({ app: "a" }, [[0, "0123456789", { k: "abcd" }]]);
    expect((await push(fifteen)).status).toBe(204);
    expect(await push(fifteen)).toEqual({ status: 429, text: text(15), retryAfterSeconds: 1 });
    expect(stored()).toHaveLength(1);
    expect(await counter("loki_discarded_samples_total", { reason: "rate_limited" })).toBe(1);
    expect(await counter("loki_discarded_bytes_total", { reason: "rate_limited" })).toBe(15);
    clock.ms += 1000;
    expect((await push(fifteen)).status).toBe(204);
  });

  it("never lets a push larger than the burst through", async () => {
    const { push } = makeHarness(limits);
    const answer = await push(jsonPush({ app: "a" }, [[0, "x".repeat(21)]]));
    expect(answer).toEqual({ status: 429, text: text(21), retryAfterSeconds: 60 });
  });

  it("counts only what validation leaves", async () => {
    const { push } = makeHarness(limits);
    expect(
      (
        await push(
          jsonPush({ app: "a" }, [
            ["1", "x".repeat(100)],
            [0, "x"],
          ]),
        )
      ).status,
    ).toBe(400);
  });

  it.each([
    ["global", 429],
    ["local", 204],
  ] as const)("of two distributors is %s", async (ingestion_rate_strategy, status) => {
    const { push, clock } = makeHarness(
      { ...limits, ingestion_rate_strategy },
      { distributorCount: () => 2 },
    );
    await push(jsonPush({ app: "a" }, [[0, "x".repeat(20)]]));
    clock.ms += 1000;
    expect((await push(jsonPush({ app: "a" }, [[0, "x".repeat(10)]]))).status).toBe(status);
  });
});

describe("blocked ingestion", () => {
  const blockedUntilMs = testNowMs + 60_000;

  it("answers with its status, stores nothing, and ends by itself", async () => {
    const { push, ingester, clock, counter } = makeHarness({
      block_ingestion_until: blockedUntilMs,
    });
    expect(await push(one)).toEqual({
      status: 260,
      text: "ingestion blocked for user 't1' until '2026-11-20T10:01:00Z' with status code '260'",
      rejected: 1,
    });
    expect(ingester.pushes).toEqual([]);
    expect(await counter("loki_discarded_samples_total", { reason: "blocked_ingestion" })).toBe(1);
    clock.ms = blockedUntilMs;
    expect((await push(one)).status).toBe(204);
  });

  it("drops without a word at 200", async () => {
    const { push, ingester } = makeHarness({
      block_ingestion_until: blockedUntilMs,
      block_ingestion_status_code: 200,
    });
    expect(await push(one)).toEqual({ status: 204 });
    expect(ingester.pushes).toEqual([]);
  });

  it("gives way to any other error", async () => {
    const { push } = makeHarness({
      block_ingestion_until: blockedUntilMs,
      enforced_labels: ["env"],
    });
    const answer = await push({
      streams: [...one.streams, ...jsonPush({ env: "e" }, [[0, "x"]]).streams],
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/^missing required labels 'env'/);
  });
});

describe("changed rows", () => {
  it("are cut to the limit, with a mark if wanted, and the body is not kept", async () => {
    const { push, stored, ingester, counter } = makeHarness({
      max_line_size: 10,
      max_line_size_truncate: true,
      max_line_size_truncate_identifier: "[cut]",
    });
    expect(
      (
        await push(
          jsonPush({ app: "a" }, [
            [0, "0123456789"],
            [0, "0123456789A"],
            [0, "0123éééééé"],
          ]),
        )
      ).status,
    ).toBe(204);
    expect(stored().map((row) => row.line)).toEqual(["0123456789", "01234[cut]", "0123[cut]"]);
    expect(ingester.pushes[0]!.batch.source).toBeUndefined();
    expect(await counter("loki_mutated_samples_total", { reason: "line_too_long" })).toBe(2);
    expect(await counter("loki_mutated_bytes_total")).toBe(1 + 16 - 9);
  });

  it("keep the body when no line was too long", async () => {
    const { push, ingester } = makeHarness({
      max_line_size_truncate: true,
      increment_duplicate_timestamp: true,
    });
    await push(one);
    expect(ingester.pushes[0]!.batch.source).toBeDefined();
  });

  it("of equal times and other lines move 1 ns apart", async () => {
    const { push, stored, ingester } = makeHarness({ increment_duplicate_timestamp: true });
    const body = {
      streams: [
        ...jsonPush({ app: "a" }, [
          [0, "a"],
          [0, "b"],
          [0, "b"],
          ["1", "old"],
          [0, "c"],
          [1, "d"],
        ]).streams,
        ...jsonPush({ app: "b" }, [[0, "a"]]).streams,
      ],
    };
    expect((await push(body)).status).toBe(400);
    expect(stored().map((row) => [row.line, Number(row.ns - testNowNs)])).toEqual([
      ["a", 0],
      ["b", 1],
      ["b", 0],
      ["c", 1],
      ["d", 1_000_000],
      ["a", 0],
    ]);
    expect(ingester.pushes[0]!.batch.source).toBeUndefined();
  });
});
