import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { decodeBody, maxDecodedBytes } from "@skald/push";
import { defaultsOf, readSchema } from "@skald/runtime/config";
import { makePushBody, snappyLiterals } from "@skald/testkit";
import { distributorConfig } from "./config.js";
import { jsonPush, makeHarness, testNowNs } from "./testing/harness.js";

const protobuf = { contentType: "application/x-protobuf" };

describe("hostile pushes", () => {
  it("of a million streams is refused before labels are looked at", async () => {
    const { push, ingester } = makeHarness();
    const streams = Buffer.alloc(2_000_000);
    for (let i = 0; i < streams.length; i += 2) streams[i] = 0x0a;
    expect(await push(snappyLiterals(streams), protobuf)).toEqual({
      status: 413,
      text: expect.stringMatching(/^push has more than 131072 streams/),
    });
    expect(ingester.pushes).toEqual([]);
  });

  it("of thirty thousand new streams lets other work go first", async () => {
    const { push, stored } = makeHarness();
    const streams = Array.from({ length: 30_000 }, (_, i) => ({
      labels: `{s="${i}"}`,
      rows: [{ ns: testNowNs, line: "x" }],
    }));
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const answer = await push(makePushBody(streams), protobuf);
    isDone = true;
    expect(answer).toEqual({ status: 204 });
    expect(stored()).toHaveLength(30_000);
    expect(turns).toBeGreaterThan(3);
  });

  it("with labels of a megabyte get a short answer", async () => {
    const { push } = makeHarness();
    const value = "v".repeat(1_000_000);
    const answer = await push(jsonPush({ app: value, [`n${value}`]: "x" }, [[0, "x"]]));
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/label value too long/);
    expect(answer.text!.length).toBeLessThan(10_000);
    expect((await push(jsonPush({ [`-${value}`]: "x" }, [[0, "x"]]))).text!.length).toBeLessThan(
      10_000,
    );
  });

  it("with a metadata name each are refused", async () => {
    const { push, ingester } = makeHarness();
    const rows = Array.from({ length: 70_000 }, (_, i) => [0, "x", { [`n${i}`]: "v" }] as const);
    expect(await push(jsonPush({ app: "a" }, rows))).toEqual({
      status: 413,
      text: expect.stringMatching(/^push has more than 65536 structured metadata names/),
    });
    expect(ingester.pushes).toEqual([]);
  });

  it("with names of the object prototype are labels like any other", async () => {
    const { push, stored } = makeHarness();
    const body =
      '{"streams":[{"stream":{"__proto__":"a","constructor":"b"},"values":[["NOW","x",{"__proto__":"c"}]]}]}';
    expect((await push(Buffer.from(body.replace("NOW", `${testNowNs}`)))).status).toBe(204);
    expect(stored()[0]!.stream).toBe(
      '{__proto__="a", constructor="b", service_name="unknown_service"}',
    );
  });

  it("with a time beyond 64 bits are refused", async () => {
    const { push } = makeHarness({ reject_old_samples: false });
    expect((await push(jsonPush({ app: "a" }, [["99999999999999999999", "x"]]))).status).toBe(400);
    const far = makePushBody([
      { labels: '{a="b"}', rows: [{ ns: 9_300_000_000n * 1_000_000_000n, line: "x" }] },
    ]);
    expect((await push(far, protobuf)).status).toBe(400);
  });
});

describe("big pushes", () => {
  it("are decoded by the worker, small ones here", async () => {
    const sizes: number[] = [];
    const { push, stored } = makeHarness(
      {},
      {
        decodeInWorker: async (_, input, maxBytes) => {
          sizes.push(input.body.length);
          return decodeBody(input, maxBytes);
        },
      },
    );
    const values = Array.from({ length: 30 }, () => [0, "x".repeat(100_000)] as const);
    expect((await push(jsonPush({ app: "a" }, values))).status).toBe(204);
    expect((await push(jsonPush({ app: "a" }, [[0, "x"]]))).status).toBe(204);
    expect(sizes).toHaveLength(1);
    expect(sizes[0]).toBeGreaterThan(2_900_000);
    expect(stored()).toHaveLength(31);
  });

  it("are decoded by the worker too where only their body is small", async () => {
    const sizes: number[] = [];
    const { push } = makeHarness(
      {},
      {
        maxDecompressedBytes: 32 << 20,
        decodeInWorker: async (_, input, maxBytes) => {
          sizes.push(maxBytes);
          return decodeBody(input, maxBytes);
        },
      },
    );
    const one = `{"streams":[{"stream":{"app":"a"},"values":[["${testNowNs}","x"]]}]}`;
    const pushOf = async (bytes: number) => {
      await nextTurn();
      const body = gzipSync(one.padEnd(bytes, " "));
      expect((await push(body, { contentEncoding: "gzip" })).status).toBe(204);
    };
    await pushOf(4 << 20);
    expect(sizes).toEqual([]);
    await pushOf((4 << 20) + 1);
    expect(sizes).toEqual([32 << 20]);
    // Its end says how large it is, so that nothing of it is inflated here.
    const broken = gzipSync(one.padEnd((4 << 20) + 1, " "));
    broken.fill(0xff, 20, 40);
    expect((await push(broken, { contentEncoding: "gzip" })).status).toBe(400);
    expect(sizes.length).toBe(2);
  });

  it.each([
    ["have many rows", 20_000, (push: unknown) => push, undefined],
    [
      "are tiny as gzip",
      1,
      (push: unknown) => gzipSync(JSON.stringify(push).padEnd(4 << 20)),
      "gzip",
    ],
  ])(
    "that %s and come all at once take this thread for some milliseconds only, the rest a worker",
    async (_name, rowCount, bodyOf, contentEncoding) => {
      let elsewhere = 0;
      const { push, stored } = makeHarness(
        { ingestion_rate_mb: 1000, ingestion_burst_size_mb: 1000 },
        {
          decodeInWorker: async (_, input, maxBytes) => {
            elsewhere++;
            return decodeBody(input, maxBytes);
          },
        },
      );
      const rows = Array.from({ length: rowCount }, (_, i) => [i, "x"] as const);
      const body = bodyOf(jsonPush({ app: "a" }, rows));
      await nextTurn();
      const answers = await Promise.all(
        Array.from({ length: 40 }, () => push(body, { contentEncoding })),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
      expect(elsewhere).toBeGreaterThan(10);
      expect(elsewhere).toBeLessThan(40);
      expect(stored()).toHaveLength(40 * rowCount);
    },
  );

  it("of a client that has left are not stored", async () => {
    const { distributor, ingester } = makeHarness();
    const streams = Array.from({ length: 5000 }, (_, i) => ({
      labels: `{s="${i}"}`,
      rows: [{ ns: testNowNs, line: "x" }],
    }));
    const answer = await distributor.push("t1", {
      ...{ contentType: protobuf.contentType, contentEncoding: undefined, style: "v1" },
      body: makePushBody(streams),
      isGone: () => true,
    });
    expect([answer.status, ingester.pushes]).toEqual([499, []]);
  });

  it("may become as much as the configuration says by default", () => {
    const { max_decompressed_size } = defaultsOf(readSchema(distributorConfig));
    expect(max_decompressed_size).toBe(maxDecodedBytes);
  });

  it("that the worker refuses get its answer", async () => {
    const { push, counter } = makeHarness(
      {},
      { decodeInWorker: async (_, input) => decodeBody(input, 1000) },
    );
    const answer = await push(jsonPush({ app: "a" }, [[0, "x".repeat(2_200_000)]]));
    expect(answer).toEqual({ status: 413, text: expect.stringMatching(/^request body too large/) });
    expect(
      await counter("loki_discarded_bytes_total", { reason: "request_body_too_large" }),
    ).toBeGreaterThan(2_200_000);
  });
});
