import { gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { makeBatch, makePushBody } from "@skald/testkit";
import { jsonPush, makeHarness, testNowNs } from "./testing/harness.js";

const dayMs = 86_400_000;
const one = jsonPush({ app: "a" }, [[0, "x"]]);

function protobufPush(labels: string | Uint8Array) {
  const body = makePushBody([{ labels, rows: [{ ns: testNowNs, line: "x" }] }]);
  return { body, contentType: "application/x-protobuf" };
}

describe("what is taken", () => {
  it.each<[string, unknown, object]>([
    ["json", one, {}],
    ["json with parameters", one, { contentType: "application/json; charset=utf-8" }],
    ["gzip", gzipSync(JSON.stringify(one)), { contentEncoding: "gzip" }],
    ["protobuf", protobufPush('{app="a"}').body, { contentType: "application/x-protobuf" }],
    [
      "protobuf as snappy",
      protobufPush('{app="a"}').body,
      { contentType: "a/b", contentEncoding: "snappy" },
    ],
    [
      "legacy json",
      { streams: [{ labels: '{app="a"}', entries: [{ ts: "2026-11-20T10:00:00Z", line: "x" }] }] },
      { style: "legacy" },
    ],
    ["legacy protobuf", protobufPush('{app="a"}').body, { contentType: "a/b", style: "legacy" }],
  ])("%s", async (_, body, request) => {
    const { push, stored } = makeHarness();
    expect(await push(body, request)).toEqual({ status: 204 });
    expect(stored()).toEqual([
      {
        stream: '{app="a", service_name="a"}',
        ns: testNowNs,
        line: "x",
        metadata: { detected_level: "unknown" },
      },
    ]);
  });

  it.each([
    ["a stream without entries", jsonPush({ app: "a" }, [])],
    [
      "a legacy body on the v1 path",
      { streams: [{ labels: '{app="a"}', entries: [{ ts: "2026-11-20T10:00:00Z", line: "x" }] }] },
    ],
  ])("%s stores nothing and is no error", async (_, body) => {
    const { push, ingester } = makeHarness();
    expect(await push(body)).toEqual({ status: 204 });
    expect(ingester.pushes).toEqual([]);
  });

  it("keeps the body for the log, with the rows that were refused", async () => {
    const { push, ingester } = makeHarness();
    const body = Buffer.from(
      JSON.stringify(
        jsonPush({ app: "a" }, [
          [-8 * dayMs, "old"],
          [0, "x"],
        ]),
      ),
    );
    await push(body);
    const batch = ingester.pushes[0]!.batch;
    expect(batch.source).toEqual({
      format: "json",
      encoding: "identity",
      body,
      dropped: Uint32Array.of(0),
    });
  });
});

describe("a body that is stored in parts, in which the log cannot keep it", () => {
  const names = (count: number) => {
    const rows = Array.from({ length: count / 64 }, (_, row) => [
      `${testNowNs}`,
      `${row}`,
      Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`n_${row * 64 + i}`, "v"])),
    ]);
    return { streams: [{ stream: { app: "a" }, values: rows }] };
  };

  it.each([
    ["4096", names(4096), true],
    ["4160", names(4160), false],
  ])("has %s names of metadata: whether it is kept", async (_, body, isKept) => {
    const { push, ingester } = makeHarness();
    expect(await push(body)).toEqual({ status: 204 });
    expect(ingester.pushes[0]!.batch.source !== undefined).toBe(isKept);
  });
});

describe("what is refused as a whole", () => {
  it.each<[string, unknown, object, number, string | RegExp]>([
    [
      "no streams",
      { streams: [] },
      {},
      422,
      "error at least one valid stream is required for ingestion",
    ],
    ["an empty object", {}, {}, 422, "error at least one valid stream is required for ingestion"],
    ["null", null, {}, 422, "error at least one valid stream is required for ingestion"],
    ["an empty body", Buffer.alloc(0), {}, 400, "EOF"],
    [
      "an empty protobuf body",
      Buffer.alloc(0),
      { contentType: "a/b" },
      400,
      "snappy: corrupt input",
    ],
    ["text", Buffer.from("app=a"), { contentType: "text/plain" }, 400, "snappy: corrupt input"],
    ["no content type", one, { contentType: undefined }, 400, "mime: no media type"],
    [
      "a bad parameter",
      one,
      { contentType: "application/json;;;" },
      400,
      "mime: invalid media parameter",
    ],
    ["an encoding", one, { contentEncoding: "br" }, 400, 'Content-Encoding "br" not supported'],
    [
      "cut gzip",
      gzipSync(JSON.stringify(one)).subarray(0, 40),
      { contentEncoding: "gzip" },
      400,
      "unexpected EOF",
    ],
    [
      "labels",
      jsonPush({ "bad-name": "x" }, [[0, "x"]]),
      {},
      400,
      "couldn't parse labels: 1:5: parse error: unexpected character inside braces: '-'",
    ],
    [
      "labels of a stream without entries",
      jsonPush({ "a.b": "x" }, []),
      {},
      400,
      "couldn't parse labels: 1:3: parse error: unexpected character inside braces: '.'",
    ],
    [
      "labels that are no text",
      protobufPush(Uint8Array.of(0x7b, 0xff)).body,
      { contentType: "a/b" },
      400,
      /invalid UTF-8/,
    ],
    [
      "a bomb",
      gzipSync(Buffer.alloc(100 << 20)),
      { contentEncoding: "gzip" },
      413,
      /^request body too large/,
    ],
    [
      "a number as time",
      Buffer.from('{"streams":[{"stream":{},"values":[[1,"x"]]}]}'),
      {},
      400,
      /timestamp/,
    ],
    [
      "metadata without a name",
      jsonPush({ app: "a" }, [[0, "x", { __: "v" }]]),
      {},
      400,
      /^structured metadata name '__'/,
    ],
    [
      "an empty backfill shard",
      one,
      { backfillShard: "" },
      400,
      "X-Loki-Backfill-Shard must have 1 to 128 bytes, not 0",
    ],
    [
      "a long backfill shard",
      one,
      { backfillShard: "x".repeat(129) },
      400,
      "X-Loki-Backfill-Shard must have 1 to 128 bytes, not 129",
    ],
  ])("%s", async (_, body, request, status, text) => {
    const { push, ingester } = makeHarness();
    expect(await push(body, request)).toEqual({
      status,
      text: typeof text === "string" ? text : expect.stringMatching(text),
    });
    expect(ingester.pushes).toEqual([]);
  });

  it("one label set that does not parse refuses the other streams too", async () => {
    const { push, ingester } = makeHarness();
    const body = { streams: [...one.streams, ...jsonPush({ "a-b": "x" }, [[0, "x"]]).streams] };
    expect((await push(body)).status).toBe(400);
    expect(ingester.pushes).toEqual([]);
  });
});

describe("the ingester", () => {
  const refusal = {
    status: 429,
    reason: "per_stream_rate_limit",
    message: "Per stream rate limit exceeded",
    entries: 2,
    bytes: 9,
  };
  const behind = {
    ...refusal,
    status: 400,
    reason: "too_far_behind",
    message: "entry too far behind",
  };

  it.each([
    [{ status: 429, text: "Per stream rate limit exceeded", retryAfterSeconds: 1 }, [refusal]],
    [{ status: 400, text: "entry too far behind" }, [behind]],
    [
      {
        status: 429,
        text: "entry too far behind; Per stream rate limit exceeded",
        retryAfterSeconds: 1,
      },
      [behind, refusal],
    ],
  ])("refuses with %j", async (answer, refusals) => {
    const { push, ingester, counter } = makeHarness();
    ingester.refusals = refusals;
    expect(await push(one)).toEqual(answer);
    expect(await counter("loki_discarded_samples_total")).toBe(2 * refusals.length);
    expect(await counter("loki_distributor_ingester_appends_total")).toBe(1);
    expect(await counter("loki_distributor_ingester_append_failures_total")).toBe(0);
  });

  it("joins its refusals with those of validation", async () => {
    const { push, ingester } = makeHarness();
    ingester.refusals = [behind];
    const answer = await push(
      jsonPush({ app: "a" }, [
        [0, "x"],
        [7_200_000, "new"],
      ]),
    );
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/^entry too far behind; entry for stream .* too new/);
  });

  it("that fails gives its status, and other failures are not hidden", async () => {
    const failures: unknown[] = [];
    const onFailure = (error: SkaldError, tenant: string) => failures.push([error, tenant]);
    const { push, ingester, counter } = makeHarness({}, { onFailure });
    ingester.failure = new SkaldError(
      "internal",
      "at least 2 live replicas required, could only find 1",
    );
    expect(await push(one)).toEqual({ status: 500, text: "internal server error" });
    expect(await counter("loki_distributor_ingester_append_failures_total")).toBe(1);
    expect(failures).toEqual([[ingester.failure, "t1"]]);
    ingester.failure = new TypeError("bug");
    await expect(push(one)).rejects.toThrow("bug");
  });
});

describe("pushBatch", () => {
  const row = (ns: bigint, line: string, metadata = {}) => ({ ns, line, metadata });
  const batch = makeBatch([
    { labels: { app: 'a "b"' }, rows: [row(testNowNs, "one", { trace: "t1", user: "ü" })] },
    { labels: { app: "c" }, rows: [row(testNowNs + 1n, "two"), row(testNowNs, "level=error")] },
  ]);

  it("stores rows as if they had come as a body", async () => {
    const harness = makeHarness();
    const outcome = await harness.distributor.pushBatch({ tenant: "t1", batch });
    expect(outcome).toEqual({ refusals: [] });
    expect(harness.stored()).toEqual([
      {
        stream: '{app="a \\"b\\"", service_name="a \\"b\\""}',
        ns: testNowNs,
        line: "one",
        metadata: { trace: "t1", user: "ü", detected_level: "unknown" },
      },
      {
        stream: '{app="c", service_name="c"}',
        ns: testNowNs + 1n,
        line: "two",
        metadata: { detected_level: "unknown" },
      },
      {
        stream: '{app="c", service_name="c"}',
        ns: testNowNs,
        line: "level=error",
        metadata: { detected_level: "error" },
      },
    ]);
    expect(harness.ingester.pushes[0]?.batch.source).toBeUndefined();
    expect(await harness.counter("loki_distributor_lines_received_total", { tenant: "t1" })).toBe(
      3,
    );
  });

  it("holds them against the limits and tells what was refused", async () => {
    const harness = makeHarness({ max_line_size: 5 });
    const { refusals } = await harness.distributor.pushBatch({ tenant: "t1", batch });
    expect(refusals).toMatchObject([{ status: 400, reason: "line_too_long", entries: 1 }]);
    expect(harness.stored()).toHaveLength(2);
  });

  it("leaves the rows of the caller as they were", async () => {
    const harness = makeHarness({ max_line_size: 5, max_line_size_truncate: true });
    await harness.distributor.pushBatch({ tenant: "t1", batch });
    expect(harness.stored().map(({ line }) => line)).toEqual(["one", "two", "level"]);
    expect([...batch.lineLength]).toEqual([3, 3, 11]);
  });

  it("is refused as a whole when the rate is used up", async () => {
    const harness = makeHarness({ ingestion_rate_mb: 1e-7, ingestion_burst_size_mb: 1e-7 });
    const pushed = harness.distributor.pushBatch({ tenant: "t1", batch });
    await expect(pushed).rejects.toMatchObject({ code: "rate_limited", retryAfterSeconds: 60 });
    expect(harness.stored()).toEqual([]);
  });
});
