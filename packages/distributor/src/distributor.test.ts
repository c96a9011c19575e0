import { gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { makePushBody } from "@skald/testkit";
import type { PushLimits } from "./limits.js";
import { jsonPush, makeHarness, testNowMs, testNowNs } from "./testing/harness.js";

const dayMs = 86_400_000;
const stream = `'{app="a", service_name="a"}'`;
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

describe("what is refused of a push", () => {
  const many = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`l${i}`, "v"]));
  const big = "m".repeat(66_000);
  const hint = (key: string) =>
    `Please see \`limits_config.${key}\` or contact your administrator to increase it`;

  it.each<[string, object, [number | string, ...unknown[]], Partial<PushLimits>, string, string]>([
    [
      "greater_than_max_sample_age",
      { app: "a" },
      [-8 * dayMs, "x"],
      {},
      `entry for stream ${stream} has timestamp too old: 2026-11-12T10:00:00Z, oldest acceptable timestamp is: 2026-11-13T10:00:00Z`,
      "",
    ],
    [
      "greater_than_max_sample_age",
      { app: "a" },
      ["-1", "x"],
      {},
      `entry for stream ${stream} has timestamp too old: 1969-12-31T23:59:59Z, oldest acceptable timestamp is: 2026-11-13T10:00:00Z`,
      "",
    ],
    [
      "too_far_in_future",
      { app: "a" },
      [600_001, "x"],
      {},
      `entry for stream ${stream} has timestamp too new: 2026-11-20T10:10:00Z`,
      "",
    ],
    [
      "line_too_long",
      { app: "a" },
      [0, "y".repeat(262_145)],
      {},
      `max entry size '262144' bytes exceeded for stream ${stream} while adding an entry with length '262145' bytes`,
      "",
    ],
    [
      "disallowed_structured_metadata",
      { app: "a" },
      [0, "x", { k: "v" }],
      { allowStructuredMetadata: false },
      `stream ${stream} includes structured metadata, but this feature is disallowed. Please see \`limits_config.allow_structured_metadata\` or contact your administrator to enable it`,
      "",
    ],
    [
      "structured_metadata_too_large",
      { app: "a" },
      [0, "x", { big }],
      {},
      `stream ${stream} has structured metadata too large: '66003' bytes, limit: '65536' bytes. ${hint("max_structured_metadata_size")}`,
      "",
    ],
    [
      "structured_metadata_too_many",
      { app: "a" },
      [0, "x", { a: "1", b: "2" }],
      { maxStructuredMetadataEntriesCount: 1 },
      `stream ${stream} has too many structured metadata labels: '2', limit: '1'. ${hint("max_structured_metadata_entries_count")}`,
      "",
    ],
    [
      "max_label_names_per_series",
      { app: "a", ...many },
      [0, "x"],
      {},
      "' has 16 label names; limit 15",
      `entry for stream '{app="a", l0="v", l1="v", l10="v"`,
    ],
    [
      "label_name_too_long",
      { ["n".repeat(1025)]: "v" },
      [0, "x"],
      {},
      `="v", service_name="unknown_service"}' has label name too long: '${"n".repeat(1025)}'`,
      "stream '{nnn",
    ],
    [
      "label_value_too_long",
      { app: "é".repeat(1025) },
      [0, "x"],
      {},
      `"}' has label value too long: '${"é".repeat(1025)}'`,
      "stream '{app=",
    ],
    [
      "missing_labels",
      {},
      [0, "x"],
      { discoverServiceName: [] },
      "error at least one label pair is required per stream",
      "",
    ],
    [
      "missing_enforced_labels",
      { app: "a" },
      [0, "x"],
      { enforcedLabels: ["app", "env", "team"] },
      `missing required labels 'env,team' for user 't1' for stream ${stream} (policy: '')`,
      "",
    ],
    [
      "invalid_labels",
      { app: "a", __backfill__: "true" },
      [0, "x"],
      {},
      "has the reserved label '__backfill__'; send the header X-Loki-Backfill-Shard instead",
      "stream '{__backfill__=",
    ],
  ])("%s", async (reason, labels, value, limits, text, start) => {
    const { push, stored, counter } = makeHarness(limits);
    const bad = jsonPush(labels as Record<string, unknown>, [value]).streams;
    const fine = limits.enforcedLabels === undefined ? one.streams : [];
    const answer = await push({ streams: [...bad, ...fine] });
    expect(answer.status).toBe(400);
    expect(answer.text?.endsWith(text)).toBe(true);
    expect(answer.text?.startsWith(start)).toBe(true);
    expect(stored().map((row) => row.line)).toEqual(fine.map(() => "x"));
    expect(await counter("loki_discarded_samples_total", { reason, tenant: "t1" })).toBe(1);
    expect(await counter("loki_discarded_samples_total")).toBe(1);
    expect(await counter("loki_discarded_bytes_total", { reason })).toBeGreaterThan(0);
  });

  it("names a label given twice", async () => {
    const { push } = makeHarness();
    const { body, contentType } = protobufPush('{app="a",app="b"}');
    expect(await push(body, { contentType })).toEqual({
      status: 400,
      text: `stream '{app="a", app="b", service_name="a"}' has duplicate label name: 'app'`,
    });
  });

  it.each([
    ["exactly a week old", -7 * dayMs, 204],
    ["a moment older", -7 * dayMs - 0.000001, 400],
    ["exactly ten minutes ahead", 600_000, 204],
    ["a moment further", 600_000.001, 400],
  ])("an entry %s", async (_, ms, status) => {
    const { push } = makeHarness();
    const time = String(
      testNowNs +
        BigInt(Math.floor(ms)) * 1_000_000n +
        BigInt(Math.round((ms - Math.floor(ms)) * 1e6)),
    );
    expect((await push(jsonPush({ app: "a" }, [[time, "x"]]))).status).toBe(status);
  });

  it("takes old entries where they are not rejected, but none that has no time", async () => {
    const { push } = makeHarness({ rejectOldSamples: false });
    expect((await push(jsonPush({ app: "a" }, [["0", "x"]]))).status).toBe(204);
    const answer = await push({ streams: [{ stream: { app: "a" }, values: [[]] }] });
    expect(answer.text).toMatch(/has timestamp too old: 0001-01-01T00:00:00Z/);
  });

  it("joins kinds of errors and counts them, with the text of the first", async () => {
    const { push, stored, counter } = makeHarness();
    const answer = await push(
      jsonPush({ app: "a" }, [
        [-8 * dayMs, "old"],
        [7_200_000, "new"],
        [-9 * dayMs, "older"],
        [-5, "ok"],
      ]),
    );
    expect(answer).toEqual({
      status: 400,
      text:
        `2 errors like: entry for stream ${stream} has timestamp too old: 2026-11-12T10:00:00Z, oldest acceptable timestamp is: 2026-11-13T10:00:00Z; ` +
        `1 errors like: entry for stream ${stream} has timestamp too new: 2026-11-20T12:00:00Z`,
    });
    expect(stored().map((row) => row.line)).toEqual(["ok"]);
    expect(await counter("loki_discarded_samples_total")).toBe(3);
    expect(await counter("loki_discarded_bytes_total")).toBe("oldnewolder".length);
    expect(await counter("loki_distributor_lines_received_total", { tenant: "t1" })).toBe(4);
    expect(await counter("loki_distributor_bytes_received_total")).toBe("oldnewolderok".length);
  });

  it("answers 200000 bad entries with one short text", async () => {
    const { push } = makeHarness({}, { maxDecompressedBytes: 1 << 30 });
    const rows = Array.from({ length: 200_000 }, () => ["1", "x"] as const);
    const answer = await push(jsonPush({ app: "a" }, rows));
    expect(answer.text).toMatch(/^200000 errors like: entry for stream .* too old/);
    expect(answer.text!.length).toBeLessThan(300);
  });
});

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

  it("are parsed once and known again, until the limits change", async () => {
    const harness = makeHarness();
    await harness.push(one);
    await harness.push(one);
    const [first, second] = harness.ingester.pushes;
    expect(second!.batch.streams[0]!.labels).toBe(first!.batch.streams[0]!.labels);
    harness.limits = { ...harness.limits, discoverServiceName: [] };
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
  const limits = { ingestionRateMb: 10 / 1048576, ingestionBurstSizeMb: 20 / 1048576 };
  const text = (bytes: number) =>
    `ingestion rate limit exceeded for user t1 (limit: 10 bytes/sec) while attempting to ingest '1' lines totaling '${bytes}' bytes, reduce log volume or contact your administrator to see if the limit can be increased`;

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
  ] as const)("of two distributors is %s", async (ingestionRateStrategy, status) => {
    const { push, clock } = makeHarness(
      { ...limits, ingestionRateStrategy },
      { distributorCount: () => 2 },
    );
    await push(jsonPush({ app: "a" }, [[0, "x".repeat(20)]]));
    clock.ms += 1000;
    expect((await push(jsonPush({ app: "a" }, [[0, "x".repeat(10)]]))).status).toBe(status);
  });
});

describe("blocked ingestion", () => {
  const blockIngestionUntilMs = testNowMs + 60_000;

  it("answers with its status, stores nothing, and ends by itself", async () => {
    const { push, ingester, clock, counter } = makeHarness({ blockIngestionUntilMs });
    expect(await push(one)).toEqual({
      status: 260,
      text: "ingestion blocked for user 't1' until '2026-11-20T10:01:00Z' with status code '260'",
    });
    expect(ingester.pushes).toEqual([]);
    expect(await counter("loki_discarded_samples_total", { reason: "blocked_ingestion" })).toBe(1);
    clock.ms = blockIngestionUntilMs;
    expect((await push(one)).status).toBe(204);
  });

  it("drops without a word at 200", async () => {
    const { push, ingester } = makeHarness({
      blockIngestionUntilMs,
      blockIngestionStatusCode: 200,
    });
    expect(await push(one)).toEqual({ status: 204 });
    expect(ingester.pushes).toEqual([]);
  });

  it("gives way to any other error", async () => {
    const { push } = makeHarness({ blockIngestionUntilMs, enforcedLabels: ["env"] });
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
      maxLineSize: 10,
      maxLineSizeTruncate: true,
      maxLineSizeTruncateIdentifier: "[cut]",
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
      maxLineSizeTruncate: true,
      incrementDuplicateTimestamp: true,
    });
    await push(one);
    expect(ingester.pushes[0]!.batch.source).toBeDefined();
  });

  it("of equal times and other lines move 1 ns apart", async () => {
    const { push, stored, ingester } = makeHarness({ incrementDuplicateTimestamp: true });
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
    ["429", [refusal], 429, "Per stream rate limit exceeded"],
    ["400", [behind], 400, "entry too far behind"],
    ["both", [behind, refusal], 429, "entry too far behind; Per stream rate limit exceeded"],
  ])("refuses with %s", async (_, refusals, status, text) => {
    const { push, ingester, counter } = makeHarness();
    ingester.refusals = refusals;
    expect(await push(one)).toEqual({ status, text });
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
    expect(await push(one)).toEqual({ status: 500, text: ingester.failure.message });
    expect(await counter("loki_distributor_ingester_append_failures_total")).toBe(1);
    expect(failures).toEqual([[ingester.failure, "t1"]]);
    ingester.failure = new TypeError("bug");
    await expect(push(one)).rejects.toThrow("bug");
  });
});
