import { deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, describe, expect, it } from "@jest/globals";
import { decodeDoor } from "@skald/push";
import { Ledger } from "@skald/runtime";
import { closeDoors, serveDoor } from "../testing/door-server.js";
import { makeHarness, testNowMs, testNowNs } from "../testing/harness.js";
import { tenantOrToken } from "./doors.js";

afterEach(closeDoors);

const now = `"${testNowNs}"`;

describe("lines of JSON over HTTP", () => {
  it("are stored as they came, with the labels that are named", async () => {
    const { post, stored } = await serveDoor("json_lines");
    const line = `{"_time":${now},"app":"a","n":12345678901234567890}`;
    expect(await post(`${line}\n`, "_stream_fields=app")).toMatchObject({ status: 204, body: "" });
    expect(stored()).toEqual([
      {
        stream: '{app="a", service_name="a"}',
        ns: testNowNs,
        line,
        metadata: { detected_level: "unknown" },
      },
    ]);
  });

  it("have the labels of the tenant where the request names none", async () => {
    const { post, stored } = await serveDoor("json_lines", { agent_label_fields: ["env"] });
    await post('{"env":"e","app":"a"}');
    await post('{"env":"e","app":"a"}', "labels=app");
    expect(stored().map(({ stream }) => stream)).toEqual([
      '{env="e", service_name="unknown_service"}',
      '{app="a", service_name="a"}',
    ]);
    expect((await post("{}", "labels=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p")).status).toBe(400);
  });

  it("without a time count one by one, even equal ones", async () => {
    const { post, stored } = await serveDoor("json_lines");
    await post("{}\n{}\n{}");
    expect(stored().map(({ ns }) => ns - testNowNs)).toEqual([0n, 1n, 2n]);
  });

  it("are refused one by one, and the others stay", async () => {
    const { post, stored, counter } = await serveDoor("json_lines", { max_line_size: 100 });
    const answer = await post(
      `{"a":1}\n{"a":\n{"_time":"1"}\n{"a":"${"x".repeat(200)}"}\n{"a":"\ud83d\ude00"}`,
    );
    expect(answer.status).toBe(400);
    expect(answer.body).toMatch(
      /^3 of 5 records were refused, number 2: invalid JSON .*number 3: .*timestamp too old.*number 4: max entry size '100' bytes exceeded/s,
    );
    expect(stored()).toHaveLength(2);
    for (const reason of ["unreadable_record", "line_too_long", "greater_than_max_sample_age"])
      expect(await counter("loki_discarded_samples_total", { reason })).toBe(1);
  });

  const packers = {
    identity: (body: Buffer) => body,
    gzip: gzipSync,
    deflate: deflateSync,
    // Node 20 lacks it.
    ...(zstdCompressSync === undefined ? {} : { zstd: zstdCompressSync }),
  };

  it("of any length are stored in pieces, packed or not", async () => {
    const count = 40_000;
    const lines = Array.from({ length: count }, (_, i) => `{"i":${i},"pad":"${"p".repeat(80)}"}\n`);
    for (const [encoding, pack] of Object.entries(packers)) {
      const { post, stored, ingester } = await serveDoor("json_lines");
      const body = pack(Buffer.from(lines.join("")));
      const answer = await post(body, "", { "content-encoding": encoding });
      expect(answer.status).toBe(204);
      expect(ingester.pushes.length).toBeGreaterThan(2);
      const found = stored().map(({ line }) => `${line}\n`);
      expect(found).toHaveLength(count);
      expect(found.find((line, i) => line !== lines[i])).toBeUndefined();
    }
  });

  it("are stored no further when the client has left, though little of the packed body is read", async () => {
    const { url, left, ingester } = await serveDoor("json_lines");
    const line = () => `{"i":"${Math.random()}","pad":"${"p".repeat(400)}"}\n`;
    const body = gzipSync(Array.from({ length: 20_000 }, line).join(""));
    const client = new AbortController();
    const store = ingester.push;
    ingester.push = async (push, options) => {
      client.abort();
      await left;
      return store(push, options);
    };
    const headers = { "content-encoding": "gzip" };
    const asked = fetch(url, { method: "POST", body, headers, signal: client.signal });
    await expect(asked).rejects.toThrow("aborted");
    await left;
    // The push that was under way ends, and the rest of the body is not looked at.
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(ingester.pushes).toHaveLength(1);
  });

  it("of ten megabytes are refused, and what is around them is not", async () => {
    const { post, stored } = await serveDoor("json_lines");
    const long = `{"a":"${"x".repeat(10_000_000)}"}`;
    const answer = await post(`{"b":1}\n${long}\n{"b":2}\n${long}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatch(
      /^2 of 4 records were refused, number 2: the record is longer than/,
    );
    expect(stored().map(({ line }) => line)).toEqual(['{"b":1}', '{"b":2}']);
  });

  it.each([
    ["an unknown encoding", "br", "{}", 400, /Content-Encoding "br" not supported/],
    ["no gzip", "gzip", "{}", 400, /^gzip: incorrect header check/],
    ["half a gzip", "gzip", gzipSync("{}").subarray(0, 15), 400, /^gzip: unexpected EOF/],
    [
      "a bomb",
      "gzip",
      gzipSync(Buffer.alloc(64 << 20, "\n")),
      413,
      /inflates to more than 33554432/,
    ],
  ])("with %s are refused", async (_name, encoding, body, status, text) => {
    const { post } = await serveDoor("json_lines");
    const answer = await post(body as string, "", { "content-encoding": encoding });
    expect(answer).toMatchObject({ status, body: expect.stringMatching(text as RegExp) });
  });

  it("stop at the rate limit of the tenant", async () => {
    const { post } = await serveDoor("json_lines", {
      ingestion_rate_mb: 1,
      ingestion_burst_size_mb: 1,
    });
    const lines = `{"a":"${"x".repeat(1000)}"}\n`.repeat(3000);
    const answer = await post(lines);
    expect(answer.status).toBe(429);
    expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
  });
});

describe("a bulk over HTTP", () => {
  it("is answered item by item", async () => {
    const { post, stored } = await serveDoor("bulk", { max_line_size: 60 });
    const answer = await post(
      `{"create":{}}\n{"m":"a"}\n{"index":{}}\n{"m":"${"x".repeat(99)}"}\n{"delete":{}}\n{"create":{}}\n{"m":"b"}\n`,
      "/elasticsearch/lo%2Dgs/_bulk",
    );
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-elastic-product")).toBe("Elasticsearch");
    const error = (reason: RegExp) => ({
      status: 400,
      error: { type: "document_parsing_exception", reason: expect.stringMatching(reason) },
    });
    expect(answer.body).toEqual({
      took: 0,
      errors: true,
      items: [
        { create: { status: 201 } },
        { index: error(/max entry size '60' bytes exceeded/) },
        { delete: error(/not supported/) },
        { create: { status: 201 } },
      ],
    });
    expect(stored().map(({ line, metadata }) => [line, metadata._index])).toEqual([
      ['{"m":"a"}', "lo-gs"],
      ['{"m":"b"}', "lo-gs"],
    ]);
  });

  it("tells of every item when an ingester refuses some, so that all are sent again", async () => {
    const harness = await serveDoor("bulk");
    const refusal = {
      status: 429,
      reason: "stream_limit",
      message: "too many",
      entries: 1,
      bytes: 1,
    };
    harness.ingester.refusals = [refusal];
    const { body } = await harness.post('{"index":{}}\n{}\n{"index":{}}\n{"a":\n');
    expect(body).toMatchObject({
      errors: true,
      items: [
        { index: { status: 429, error: { reason: "too many" } } },
        { index: { status: 400 } },
      ],
    });
  });

  it.each([
    ["no action", "{}\n", {}, 400],
    ["too much for the rate", '{"index":{}}\n{}\n', { ingestion_burst_size_mb: 0 }, 429],
  ])("with %s is refused as a whole", async (_name, text, limits, status) => {
    const { post, stored } = await serveDoor("bulk", limits);
    const answer = await post(text);
    expect(answer).toMatchObject({
      status,
      body: { status, error: { reason: expect.any(String) } },
    });
    expect(stored()).toEqual([]);
  });

  it("of one document says what became of it", async () => {
    const { post } = await serveDoor("document", { max_line_size: 60 });
    expect(await post('{"m":\n"a"}', "/elasticsearch/l/_doc")).toMatchObject({
      status: 201,
      body: { result: "created" },
    });
    for (const bad of ["{", "", `{"m":"${"x".repeat(99)}"}`]) {
      expect(await post(bad)).toMatchObject({ status: 400, body: { status: 400 } });
    }
  });
});

describe("a collector over HTTP", () => {
  it("answers with Splunk's codes", async () => {
    const { post, stored } = await serveDoor("hec");
    expect(await post('{"event":"a","host":"h"}{"event":{"b":1}}')).toMatchObject({
      status: 200,
      body: { text: "Success", code: 0 },
    });
    expect(await post(" ")).toMatchObject({ status: 400, body: { text: "No data", code: 5 } });
    expect(await post('{"event":"c"}{"event":""}')).toMatchObject({
      status: 400,
      body: { code: 6, "invalid-event-number": 1 },
    });
    expect(stored().map(({ stream, line }) => [stream, line])).toEqual([
      ['{host="h", service_name="unknown_service"}', "a"],
      ['{service_name="unknown_service"}', '{"b":1}'],
      ['{service_name="unknown_service"}', "c"],
    ]);
  });

  it("says that it is busy", async () => {
    const { post } = await serveDoor("hec", { ingestion_burst_size_mb: 0 });
    expect(await post('{"event":"a"}')).toMatchObject({ status: 429, body: { code: 9 } });
  });

  it("takes raw lines with the fields of its parameters", async () => {
    const { post, stored } = await serveDoor("hec_raw");
    await post("one\ntwo", "host=h&source=s&sourcetype=st&index=i");
    expect(stored()).toMatchObject([
      {
        stream: '{host="h", index="i", service_name="unknown_service", sourcetype="st"}',
        line: "one",
      },
      { line: "two", metadata: { source: "s" } },
    ]);
  });
});

describe("an intake of Datadog over HTTP", () => {
  it("stores messages and gives the errors of an agent", async () => {
    const { post, stored } = await serveDoor("datadog");
    const record = `{"message":"m","status":"error","timestamp":${testNowMs},"service":"s"}`;
    expect(await post(`[${record}]`, "ddsource=d&hostname=h&ddtags=a:b")).toMatchObject({
      status: 202,
      body: {},
    });
    expect(stored()).toEqual([
      {
        stream: '{ddsource="d", hostname="h", service="s", service_name="s"}',
        ns: testNowNs,
        line: "m",
        metadata: { status: "error", level: "error", detected_level: "error", ddtags: "a:b" },
      },
    ]);
    expect(await post("[{")).toMatchObject({ status: 400, body: { errors: [{ status: "400" }] } });
  });
});

describe("a journal over HTTP", () => {
  const entry = (message: string) => `MESSAGE=${message}\nPRIORITY=3\n_HOSTNAME=h\n\n`;

  it("is accepted also where entries are refused, because its sender would give up", async () => {
    const { post, stored } = await serveDoor("journal", { max_line_size: 10 });
    expect((await post(entry("a"))).status).toBe(202);
    const answer = await post(entry("b") + entry("x".repeat(99)) + entry("c"));
    expect(answer).toMatchObject({ status: 202, body: expect.stringMatching(/^1 of 3 records/) });
    expect(stored()).toMatchObject([
      { stream: '{_HOSTNAME="h", service_name="unknown_service"}', line: "a" },
      { line: "b", metadata: { detected_level: "error", PRIORITY: "3" } },
      { line: "c" },
    ]);
    expect((await post("no field\n")).status).toBe(202);
    expect((await post(`${"A".repeat(300)}\n`)).status).toBe(400);
  });

  it("has fields of 64 MB skipped, and lines without an end", async () => {
    const { post, stored } = await serveDoor("journal");
    const size = 64 * 1024 * 1024;
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(size));
    const piece = Buffer.alloc(64 * 1024, "\n");
    const parts = function* () {
      yield Buffer.from(entry("a"));
      yield Buffer.concat([Buffer.from("COREDUMP\n"), length]);
      for (let i = 0; i < size / piece.length; i++) yield piece;
      yield Buffer.from(`\nMESSAGE=lost\n\n${entry("b")}MESSAGE=`);
      for (let i = 0; i < 100; i++) yield Buffer.alloc(64 * 1024, "x");
      yield Buffer.from(`\nX=1\n\n${entry("c")}`);
    };
    const iterator = parts();
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const { done, value } = iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
    });
    const answer = await post(body);
    expect(answer).toMatchObject({ status: 202, body: expect.stringMatching(/^2 of 5 records/) });
    expect(stored().map(({ line }) => line)).toEqual(["a", "b", "c"]);
  });
});

describe.each([
  ["json_lines", "{}"],
  ["bulk", '{"index":{}}\n{}\n'],
  ["document", "{}"],
  ["hec", '{"event":1}'],
  ["hec_raw", "x"],
  ["datadog", '[{"message":"x"}]'],
  ["journal", "MESSAGE=x\n\n"],
] as const)("the door %s", (name, body) => {
  const isBulk = name === "bulk";

  it("says that ingestion is blocked", async () => {
    const limits = { block_ingestion_until: testNowMs + 1000, block_ingestion_status_code: 260 };
    const { post, stored } = await serveDoor(name, limits);
    const answer = await post(body);
    if (isBulk) expect(answer.body).toMatchObject({ errors: true });
    else expect(answer.status).toBe(260);
    expect(JSON.stringify(answer.body)).toContain("ingestion blocked");
    expect(stored()).toEqual([]);
  });

  it("is closed while pushes hold all memory", async () => {
    const { post, stored } = await serveDoor(name, {}, { ledger: new Ledger(1) });
    const answer = await post(body.padEnd(100, " "));
    expect([429, 503]).toContain(answer.status);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(stored()).toEqual([]);
  });

  it("refuses a body that is too large, whole or unpacked", async () => {
    if (name !== "json_lines" && name !== "journal") {
      const { post } = await serveDoor(name, {}, { maxReceivedBytes: 5 });
      expect((await post(body.padEnd(100, " "))).status).toBe(413);
    }
    const { post, stored } = await serveDoor(name);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, "\n"));
    expect((await post(bomb, "", { "content-encoding": "gzip" })).status).toBe(413);
    expect(stored()).toEqual([]);
  });
});

describe("a tenant that may not have structured metadata", () => {
  const limits = { allow_structured_metadata: false };

  it.each([
    ["json_lines", '{"m":"x","b":1}', "message_field=m", 400],
    ["bulk", '{"index":{"_index":"i"}}\n{"b":1}\n', "", 200],
    ["document", '{"b":1}', "/elasticsearch/i/_doc", 400],
    ["hec", '{"event":"x","fields":{"b":"1"}}', "", 400],
    ["hec_raw", "x", "source=s", 400],
    ["datadog", '[{"message":"x","ddtags":"b:1"}]', "", 400],
  ] as const)("hears from %s what to change", async (name, body, query, status) => {
    const { post, stored, counter } = await serveDoor(name, limits);
    const answer = await post(body, query);
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.body)).toContain("limits_config.allow_structured_metadata");
    expect(stored()).toEqual([]);
    const reason = "disallowed_structured_metadata";
    expect(await counter("loki_discarded_samples_total", { reason })).toBe(1);
  });

  it.each([
    ["json_lines", '{"m":"x","b":1}', "labels=m"],
    ["bulk", '{"index":{"_index":"i"}}\n{"b":1}\n', "labels=_index"],
    ["bulk", '{"index":{"_index":"i"}}\n{"b":1}\n', "ignore_fields=_index"],
  ] as const)("has whole records of %s stored: %s %s", async (name, body, query) => {
    const { post, stored } = await serveDoor(name, limits);
    expect((await post(body, query)).status).toBeLessThan(300);
    expect(stored()).toMatchObject([{ line: expect.stringContaining('"b":1'), metadata: {} }]);
  });

  it("has the lines of a journal stored without other fields, because its sender cannot be told", async () => {
    const { post, stored, counter } = await serveDoor("journal", limits);
    const entry = (text: string) => `MESSAGE=${text}\nPRIORITY=3\n_HOSTNAME=h\n_PID=1\n\n`;
    expect(await post(entry("a") + entry("b"))).toMatchObject({ status: 202, body: "" });
    expect(stored()).toMatchObject([
      { stream: '{_HOSTNAME="h", service_name="unknown_service"}', line: "a", metadata: {} },
      { line: "b" },
    ]);
    const reason = "disallowed_structured_metadata";
    expect(await counter("loki_mutated_samples_total", { reason })).toBe(2);
    expect(await counter("loki_mutated_bytes_total", { reason })).toBe(
      2 * "PRIORITY3level_PIDerror1".length,
    );
  });
});

describe.each([
  ["json_lines", (fields: string) => `{${fields}}`],
  ["bulk", (fields: string) => `{"index":{}}\n{${fields}}\n`],
  ["document", (fields: string) => `{${fields}}`],
  ["hec", (fields: string) => `{"event":{${fields}}}`],
  ["datadog", (fields: string) => `[{${fields}}]`],
  ["journal", (fields: string) => `${fields.replace(/"(\w+)":"([^"]*)",?/g, "$1=$2\n")}\n`],
] as const)("the door %s, named as VictoriaLogs names things", (name, bodyOf) => {
  const names = {
    ...{ "VL-Stream-Fields": "keep,more", "VL-Msg-Field": "text", "VL-Time-Field": "at" },
    ...{ "VL-Ignore-Fields": "drop", "VL-Extra-Fields": "more=x" },
  };
  const params = Object.entries(names).map(([header, value]) => {
    const param = header.slice("VL-".length).toLowerCase().replaceAll("-", "_");
    return [/^(ignore|extra)/.test(param) ? param : `_${param}`, value];
  });
  it.each([
    ["parameters", `${new URLSearchParams(params as [string, string][])}`, {}],
    ["headers", "", names],
  ])("takes its %s", async (_kind, query, headers) => {
    const { post, stored } = await serveDoor(name);
    const time = `${testNowNs - 5n}`;
    const fields = `"keep":"k","text":"the line","at":"${time}","drop":"d","rest":"r"`;
    expect((await post(bodyOf(fields), query, headers)).status).toBeLessThan(300);
    const { detected_level: _, ...metadata } = stored()[0]!.metadata;
    expect({ ...stored()[0], metadata }).toEqual({
      ...{ stream: '{keep="k", more="x", service_name="unknown_service"}', line: "the line" },
      ...{ ns: testNowNs - 5n, metadata: { rest: "r" } },
    });
  });
});

it("lines of a collector have the fields that VictoriaLogs' names add", async () => {
  const { post, stored } = await serveDoor("hec_raw");
  await post("a", "_stream_fields=more&extra_fields=more=x,rest=r");
  await post("b", "", { "VL-Stream-Fields": "more", "VL-Extra-Fields": "more=x,rest=r" });
  for (const { stream, metadata } of stored())
    expect([stream, metadata.rest]).toEqual(['{more="x", service_name="unknown_service"}', "r"]);
});

describe("big bodies of records", () => {
  it("are decoded by the worker, small ones here", async () => {
    const sizes: number[] = [];
    const { distributor, stored } = makeHarness(
      {},
      {
        decodeInWorker: () => Promise.reject(new Error("no push")),
        decodeRecordsInWorker: (_tenant, input, maxBytes) => {
          sizes.push(input.body.length);
          return Promise.resolve(decodeDoor(input, maxBytes));
        },
      },
    );
    const mapping = { labels: [], message: [], time: [], ignore: [], extra: [] };
    const line = `{"a":"${"x".repeat(1000)}"}\n`;
    for (const count of [10, 2000]) {
      const body = Buffer.from(line.repeat(count));
      const push = { format: "json_lines", contentEncoding: undefined, mapping, body } as const;
      expect(await distributor.pushRecords("t1", push)).toMatchObject({ status: 204 });
    }
    expect(sizes).toEqual([2000 * line.length]);
    expect(stored()).toHaveLength(2010);
  });
});

it.each([
  [{ "x-scope-orgid": "a", authorization: "Splunk b" }, "a"],
  [{ authorization: "Splunk b" }, "b"],
  [{ "x-scope-orgid": "", "dd-api-key": "c" }, "c"],
  [{ authorization: "Basic YTpi" }, undefined],
])("the tenant of %p is %p", (headers, tenant) => {
  expect(tenantOrToken(headers)).toBe(tenant);
});
