import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { noTimestampSeconds } from "@skald/kernels";
import { assembleBatch, decodeBody } from "@skald/push";
import { defaultLimits } from "@skald/runtime/config";
import { ArrivalTimes } from "./alter-rows.js";
import type { PushLimits } from "./config.js";
import type { DistributorOptions, IncomingPush } from "./distributor.js";
import { answerForm, retryableStatus } from "./http.js";
import { makeHarness, rowsOf, testNowMs, testNowNs } from "./testing/harness.js";

type Value = { stringValue?: string; intValue?: number };

const text = (stringValue: string): Value => ({ stringValue });

function attributes(values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([key, value]) => ({ key, value: text(value) }));
}

/** A request of one record for each of some resources. */
function otlpPush(
  resources: readonly Readonly<Record<string, string>>[],
  record: Readonly<Record<string, unknown>> = {},
) {
  return {
    resourceLogs: resources.map((resource) => ({
      resource: { attributes: attributes(resource) },
      scopeLogs: [
        { logRecords: [{ timeUnixNano: String(testNowNs), body: text("hello"), ...record }] },
      ],
    })),
  };
}

function setUp(limits: Partial<PushLimits> = {}, options: Partial<DistributorOptions> = {}) {
  const harness = makeHarness(limits, {
    otlpIndexLabels: ["service.name", "k8s.job.name"],
    ...options,
  });
  const push = (body: unknown, request: Partial<IncomingPush> = {}) =>
    harness.push(body, { style: "otlp", ...request });
  return {
    ...harness,
    push,
    setLimits: (next: PushLimits) => Object.assign(harness, { limits: next }),
  };
}

function config(values: Partial<PushLimits["otlp_config"]>): Partial<PushLimits> {
  return { otlp_config: { ...defaultLimits.otlp_config, ...values } };
}

describe("a push of OTLP", () => {
  it("is stored under the labels of its resource, with the level of its severity", async () => {
    const { push, stored } = setUp();
    const resource = { "service.name": "shop", "host.name": "h" };
    expect(await push(otlpPush([resource], { severityNumber: 17 }))).toEqual({ status: 204 });
    expect(stored()).toEqual([
      {
        stream: '{service_name="shop"}',
        ns: testNowNs,
        line: "hello",
        metadata: { host_name: "h", severity_number: "17", detected_level: "error" },
      },
    ]);
  });

  it.each<[string, Record<string, string>, Partial<PushLimits>, string]>([
    [
      "an index label",
      { "k8s.job.name": "nightly" },
      {},
      '{k8s_job_name="nightly", service_name="nightly"}',
    ],
    ["nothing", { app: "not a label" }, {}, '{service_name="unknown_service"}'],
    [
      "the service, though that is no label",
      { "service.name": "shop", "k8s.job.name": "nightly" },
      config({
        resource_attributes: {
          ignore_defaults: true,
          attributes_config: [{ action: "index_label", attributes: ["k8s.job.name"], regex: "" }],
        },
      }),
      '{k8s_job_name="nightly"}',
    ],
  ])("takes its service from %s", async (_, resource, limits, stream) => {
    const { push, stored } = setUp(limits);
    expect((await push(otlpPush([resource]))).status).toBe(204);
    expect(stored().map((row) => row.stream)).toEqual([stream]);
  });

  it("has the index labels of its process, whatever others with the same limits have", async () => {
    for (const name of ["host.name", "k8s.job.name"]) {
      const { push, stored } = setUp({}, { otlpIndexLabels: ["service.name", name] });
      await push(otlpPush([{ "service.name": "shop", [name]: "x" }]));
      const label = name.replaceAll(".", "_");
      expect(stored()[0]?.stream).toBe(
        `{${[`${label}="x"`, 'service_name="shop"'].sort().join(", ")}}`,
      );
    }
  });

  it("keeps attributes as the rules of its tenant say, the defaults first", async () => {
    const rule = {
      action: "drop" as const,
      attributes: ["service.name", "secret"],
      regex: "",
    };
    const { push, stored } = setUp(
      config({
        resource_attributes: { ignore_defaults: false, attributes_config: [rule] },
        severity_text_as_label: true,
      }),
    );
    await push(otlpPush([{ "service.name": "shop", secret: "s" }], { severityText: "WARN" }));
    expect(stored()).toMatchObject([
      {
        stream: '{service_name="shop", severity_text="WARN"}',
        metadata: { detected_level: "warn" },
      },
    ]);
    expect(stored()[0]?.metadata).not.toHaveProperty("secret");
  });

  it("without a time gets that of its arrival", async () => {
    const { push, stored } = setUp();
    await push(otlpPush([{}], { timeUnixNano: "0" }));
    expect(stored()[0]?.ns).toBe(testNowNs);
  });

  it("without times keeps each row, in order, over all resources and pushes of a millisecond", async () => {
    const { push, stored, clock } = setUp(config({ severity_text_as_label: true }));
    const resources = [{ "service.name": "a" }, { "service.name": "b" }, { "service.name": "a" }];
    const body = otlpPush(resources, { timeUnixNano: "0" });
    // A record whose label gives it a stream of its own, in the first resource.
    const { logRecords } = body.resourceLogs[0]!.scopeLogs[0]!;
    logRecords.push({ ...logRecords[0]!, ...{ severityText: "WARN" } });
    for (let i = 0; i < 2; i++) expect((await push(body)).status).toBe(204);
    const after = (ns: bigint) => stored().map((row) => row.ns - ns);
    expect(after(testNowNs)).toEqual([0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n]);
    clock.ms -= 999;
    await push(body);
    expect(after(testNowNs).slice(8)).toEqual([8n, 9n, 10n, 11n]);
    clock.ms -= 2;
    await push(body);
    expect(after(testNowNs - 1_001_000_000n).slice(12)).toEqual([0n, 1n, 2n, 3n]);
  });

  it("without times is logged in columns, since its body does not say them", async () => {
    const { push, ingester } = setUp();
    await push(otlpPush([{}]));
    await push(otlpPush([{}], { timeUnixNano: "0" }));
    expect(ingester.pushes.map(({ batch }) => batch.source === undefined)).toEqual([false, true]);
  });

  it("may have times of arrival in two seconds", () => {
    const seconds = new Float64Array(2).fill(noTimestampSeconds);
    const nanos = Uint32Array.of(999_999, 1_000_000);
    const isStamped = new ArrivalTimes().stamp({ rowCount: 2, seconds, nanos }, testNowMs + 999);
    expect([isStamped, ...seconds, ...nanos]).toEqual([
      true,
      testNowMs / 1000,
      testNowMs / 1000 + 1,
      999_999_999,
      0,
    ]);
  });

  it("is replayed as it was stored, whatever the rules are by then", async () => {
    const { push, ingester, setLimits } = setUp(config({ severity_text_as_label: true }));
    const resources = [{ "service.name": "a", x: "1" }, { "k8s.job.name": "b" }];
    const body = otlpPush(resources, { severityText: "ERROR" });
    expect((await push(gzipSync(JSON.stringify(body)), { contentEncoding: "gzip" })).status).toBe(
      204,
    );
    setLimits(defaultLimits);
    const { batch } = ingester.pushes[0]!;
    const source = batch.source!;
    const otlp = JSON.parse(JSON.stringify(source.otlp)) as NonNullable<typeof source.otlp>;
    const replayed = assembleBatch(decodeBody({ ...source, otlp }), {
      streams: batch.streams.map(({ ordinal, text }) => ({ ordinal, text })),
      dropped: source.dropped,
      levels: batch.levels,
    });
    expect(rowsOf(replayed)).toEqual(rowsOf(batch));
  });

  it.each<[string, Partial<IncomingPush>, number, string]>([
    [
      "another type",
      { contentType: "text/plain" },
      400,
      "content type: text/plain is not supported",
    ],
    ["a parameter", { contentType: "application/json; charset=utf-8" }, 400, "is not supported"],
    ["another encoding", { contentEncoding: "br" }, 400, "only gzip, lz4 and zstd are supported"],
    ["broken gzip", { contentEncoding: "gzip" }, 400, "gzip: "],
    ["broken zstd", { contentEncoding: "zstd" }, 400, "zstd: "],
    ["broken lz4", { contentEncoding: "lz4" }, 400, "lz4: bad magic number"],
    ["no protobuf", { contentType: "application/x-protobuf" }, 400, "proto: "],
  ])("with %s is refused", async (_, request, status, message) => {
    const answer = await setUp().push(otlpPush([{}]), request);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(message);
  });

  it("may be zstd", async () => {
    const { push, stored } = setUp();
    const body = zstdCompressSync(Buffer.from(JSON.stringify(otlpPush([{ a: "1" }]))));
    expect((await push(body, { contentEncoding: "zstd" })).status).toBe(204);
    expect(stored()).toHaveLength(1);
  });

  it("without records is refused, and one of which a part is refused is stored in part", async () => {
    const { push, stored } = setUp({ max_label_names_per_series: 1 });
    expect(await push({ resourceLogs: [] })).toMatchObject({ status: 422 });
    const two = [{ "service.name": "ok" }, { "k8s.job.name": "j", "service.name": "many" }];
    expect((await push(otlpPush(two))).status).toBe(204);
    const { push: strict, stored: left } = setUp({ max_label_value_length: 4 });
    expect(
      (await strict(otlpPush([{ "service.name": "ok" }, { "service.name": "too long" }]))).status,
    ).toBe(400);
    expect([stored().length, left().length]).toEqual([2, 1]);
  });
});

describe("an answer", () => {
  it.each([
    ["v1", "application/json", "text/plain; charset=utf-8", Buffer.from("x\n")],
    ["otlp", "application/json", "application/json", Buffer.from('{"message":"x"}')],
    ["otlp", "application/x-protobuf", "application/x-protobuf", Buffer.from([0x12, 1, 0x78])],
    ["otlp", undefined, "application/x-protobuf", Buffer.from([0x12, 1, 0x78])],
  ] as const)("to %s of %s is %s", (style, type, contentType, body) => {
    const form = answerForm(style, type);
    expect([form.contentType, Buffer.from(form.encode("x"))]).toEqual([contentType, body]);
  });

  it("in protobuf may be long", () => {
    const { encode } = answerForm("otlp", "application/x-protobuf");
    expect(Buffer.from(encode("y".repeat(300))).subarray(0, 4)).toEqual(
      Buffer.from([0x12, 0xac, 2, 0x79]),
    );
  });

  it("to what collectors should send again is never 500", () => {
    expect([500, 503, 429, 400].map(retryableStatus)).toEqual([503, 503, 429, 400]);
  });
});
