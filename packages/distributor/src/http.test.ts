import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { TakeBytes } from "@skald/kernels";
import { SkaldError } from "@skald/model";
import { Ledger } from "@skald/runtime";
import type { IncomingRecords } from "./distributor.js";
import { createPushHandler, PushDoor } from "./http.js";
import { type Harness, jsonPush, makeHarness } from "./testing/harness.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function serve(options: {
  harness: { readonly distributor: Pick<Harness["distributor"], "push"> };
  maxReceivedBytes?: number;
  ledger?: Ledger;
  onFault?: (error: unknown) => void;
}): Promise<string> {
  const door = new PushDoor({
    distributor: {
      push: (tenant, push) => options.harness.distributor.push(tenant, push),
      pushRecords: () => Promise.reject(new Error("no test sends records here")),
    },
    maxReceivedBytes: options.maxReceivedBytes ?? 1000,
    ledger: options.ledger ?? new Ledger(0),
  });
  const handle = createPushHandler(door);
  const server = createServer((request, response) => {
    const style = request.url?.startsWith("/api/prom") ? "legacy" : "v1";
    handle(request, response, "t1", style).catch((error: unknown) => {
      options.onFault?.(error);
      response.destroy();
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/loki/api/v1/push`;
}

async function post(
  url: string,
  body: string | ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const chunked = typeof body === "object" ? { duplex: "half" as const } : {};
  const response = await fetch(url, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
    ...chunked,
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function streamOf(chunks: number, size: number): ReadableStream<Uint8Array> {
  let left = chunks;
  return new ReadableStream({
    pull: (controller) => {
      if (left-- > 0) controller.enqueue(new Uint8Array(size).fill(0x20));
      else controller.close();
    },
  });
}

const one = JSON.stringify(jsonPush({ app: "a" }, [[0, "x"]]));

describe("createPushHandler", () => {
  it("gives the memory of an answered push to the next, of one that failed to nobody", async () => {
    const seen: ArrayBuffer[] = [];
    const statuses = [204, 503, 204, 400, 204];
    const distributor: Pick<Harness["distributor"], "push"> = {
      push: async (_tenant, { take }) => {
        seen.push((take as TakeBytes)(100).buffer);
        return { status: statuses[seen.length - 1] as number };
      },
    };
    const url = await serve({ harness: { distributor } });
    for (const status of statuses) expect((await post(url, one)).status).toBe(status);
    const [a, b, c, d, e] = seen;
    expect([b === a, c === b, d === c, e === d]).toEqual([true, false, true, true]);
  });

  it("gives the memory of a body that did not arrive back", async () => {
    const { distributor } = makeHarness();
    const ledger = new Ledger(64 * 1024 * 1024);
    const door = new PushDoor({ distributor, ledger, maxReceivedBytes: 0 });
    let memory: Uint8Array | undefined;
    const answer = await door.serve("t1", {
      isGone: () => true,
      read: async (_maxBytes, _book, take) => {
        memory = take(32 * 1024 * 1024);
        throw new SkaldError("cancelled", "the client left");
      },
    });
    expect([answer.status, memory?.length]).toEqual([499, 0]);
  });

  it("gives pushes that are served at the same time memory of their own", async () => {
    const seen: ArrayBuffer[] = [];
    let release = () => {};
    const both = new Promise<void>((resolve) => {
      release = resolve;
    });
    const distributor: Pick<Harness["distributor"], "push"> = {
      push: async (_tenant, { take }) => {
        if (seen.push((take as TakeBytes)(100).buffer) === 2) release();
        await both;
        return { status: 204 };
      },
    };
    const url = await serve({ harness: { distributor } });
    await Promise.all([post(url, one), post(url, one)]);
    expect(seen[0]).not.toBe(seen[1]);
  });

  it("says which bodies of records lie in its memory, and takes memory that was moved for none", async () => {
    const owned: unknown[] = [];
    const sizes: number[] = [];
    const distributor = {
      push: () => Promise.reject(new Error("no test sends a push here")),
      pushRecords: async (_tenant: string, { body, ownsBody }: IncomingRecords) => {
        owned.push(ownsBody);
        sizes.push(body.length);
        if (ownsBody === true) structuredClone(0, { transfer: [body.buffer as ArrayBuffer] });
        return { status: 204 };
      },
    };
    const door = new PushDoor({ distributor, maxReceivedBytes: 1000, ledger: new Ledger(0) });
    const records = { contentEncoding: undefined, format: "json_lines", mapping: {} } as never;
    const send = (bodyOf: (take: TakeBytes) => Uint8Array) =>
      door.serve("t1", {
        isGone: () => false,
        read: async (_maxBytes, _book, take) => Object.assign({ body: bodyOf(take) }, records),
      });
    const other = Buffer.alloc(7);
    await send((take) => take(5));
    await send((take) => take(6));
    await send(() => other);
    expect([owned, sizes, other.length]).toEqual([[true, true, false], [5, 6, 7], 7]);
  });

  it("answers 204 without a body, and hands the shard on", async () => {
    const harness = makeHarness();
    const url = await serve({ harness });
    const answer = await post(url, one, { "X-Loki-Backfill-Shard": "3" });
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expect(harness.stored()[0]?.stream).toContain('__backfill_shard__="3"');
  });

  it("writes errors as plain text that ends with a line feed", async () => {
    const url = await serve({ harness: makeHarness() });
    const answer = await post(url, '{"streams":[]}');
    expect(answer.status).toBe(422);
    expect(answer.text).toBe("error at least one valid stream is required for ingestion\n");
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("says when to come back after 429", async () => {
    const harness = makeHarness({ ingestion_burst_size_mb: 0 });
    const answer = await post(await serve({ harness }), one);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "60"]);
  });

  it("takes the legacy form by its path", async () => {
    const harness = makeHarness();
    const url = (await serve({ harness })).replace("/loki/api/v1", "/api/prom");
    const body =
      '{"streams":[{"labels":"{a=\\"b\\"}","entries":[{"ts":"2026-11-20T10:00:00Z","line":"x"}]}]}';
    expect((await post(url, body)).status).toBe(204);
    expect(harness.stored()).toHaveLength(1);
  });

  it.each([
    ["declared", () => " ".repeat(1001)],
    ["undeclared", () => streamOf(20, 100)],
  ])("refuses a body above the limit, %s", async (_, body) => {
    const harness = makeHarness();
    const answer = await post(await serve({ harness }), body());
    expect([answer.status, answer.text]).toEqual([
      413,
      "request body too large: limit is 1000 bytes\n",
    ]);
    expect(harness.ingester.pushes).toEqual([]);
  });

  it("takes an undeclared body within the limit", async () => {
    const chunks = new Blob([one]).stream() as ReadableStream<Uint8Array>;
    expect((await post(await serve({ harness: makeHarness() }), chunks)).status).toBe(204);
  });

  it.each([
    ["declared", () => one],
    ["undeclared", () => streamOf(9, 100)],
  ])(
    "refuses what goes beyond the bytes in flight, %s, and books nothing for it",
    async (_, body) => {
      const ledger = new Ledger(50);
      const url = await serve({ harness: makeHarness(), ledger });
      const answer = await post(url, body());
      expect([answer.status, answer.text, answer.headers.get("retry-after")]).toEqual([
        ...[
          503,
          expect.stringContaining("pushes hold 50 bytes (distributor.max_inflight_bytes)"),
          "1",
        ],
      ]);
      expect(ledger.bytes).toBe(0);
    },
  );

  it("holds the bytes of a push until it is answered", async () => {
    const harness = makeHarness();
    const ledger = new Ledger(2 * one.length);
    const url = await serve({ harness, ledger });
    const released = deferred();
    const arrived = deferred();
    harness.ingester.push = async () => {
      arrived.resolve();
      await released.promise;
      return { refusals: [] };
    };
    const first = post(url, one);
    await arrived.promise;
    expect(ledger.bytes).toBeGreaterThan(one.length);
    expect((await post(url, one)).status).toBe(503);
    released.resolve();
    expect((await first).status).toBe(204);
    expect((await post(url, one)).status).toBe(204);
    expect(ledger.bytes).toBe(0);
  });

  it.each([
    ["declared", { "content-length": "5000000" }],
    ["undeclared", { "transfer-encoding": "chunked" }],
  ])(
    "books nothing of a body that is too large, %s, however much of it still comes",
    async (_, length) => {
      const ledger = new Ledger(10_000_000);
      const booked: number[] = [];
      const receive = ledger.receive.bind(ledger);
      ledger.receive = (account, bytes, claimed) => {
        receive(account, bytes, claimed);
        booked.push(bytes);
      };
      const url = await serve({ harness: makeHarness(), ledger });
      for (let round = 0; round < 3; round++) {
        const headers = { ...length, "content-type": "application/json" };
        const request = httpRequest(url, { method: "POST", headers });
        const status = new Promise((resolve, reject) => {
          request.once("response", (response: IncomingMessage) => {
            response.resume();
            response.once("end", () => resolve(response.statusCode));
          });
          request.once("error", reject);
        });
        for (let part = 0; part < 50; part++) request.write("x".repeat(100_000));
        await new Promise<void>((resolve) => request.end(resolve));
        expect(await status).toBe(413);
      }
      expect(ledger.bytes).toBe(0);
      expect(booked.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(3000);
    },
  );

  it("frees what a client that left midway had booked", async () => {
    const ledger = new Ledger(1000);
    const url = await serve({ harness: makeHarness(), ledger });
    const request = httpRequest(url, { method: "POST", headers: { "content-length": 500 } });
    request.on("error", () => undefined);
    request.write("{");
    await until(() => ledger.bytes === 1);
    request.destroy();
    await until(() => ledger.bytes === 0);
  });

  it("counts what a body was decoded to until it is answered", async () => {
    const harness = makeHarness();
    const ledger = new Ledger(1000);
    const seen: number[] = [];
    harness.ingester.push = async () => {
      seen.push(ledger.bytes);
      return { refusals: [] };
    };
    expect((await post(await serve({ harness, ledger }), one)).status).toBe(204);
    expect(seen[0]).toBeGreaterThan(one.length);
    expect(ledger.bytes).toBe(0);
  });

  it("leaves faults of the program to its caller", async () => {
    const harness = makeHarness();
    const faults: unknown[] = [];
    const url = await serve({ harness, onFault: (error) => faults.push(error) });
    harness.ingester.failure = new TypeError("bug");
    await expect(post(url, one)).rejects.toThrow();
    expect(faults).toEqual([harness.ingester.failure]);
  });

  it("serves further pushes on the connection of a refused one", async () => {
    const url = await serve({ harness: makeHarness() });
    for (const [body, status] of [
      [one, 204],
      ["[]", 400],
      [one, 204],
    ] as const) {
      expect(await postRaw(url, body)).toBe(status);
    }
  });
});

function postRaw(url: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const request = httpRequest(url, { method: "POST", headers }, (response: IncomingMessage) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
    });
    request.once("error", reject);
    request.end(body);
  });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
