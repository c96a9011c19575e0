import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { scannerOf } from "@skald/contracts/testing/fakes";
import { SkaldError } from "@skald/model";
import { type Carrier, carriers, happened } from "./testing/carriers.js";
import { makeEchoes } from "./testing/echo.js";
import { connectTestServices, startTestServices } from "./testing/services.js";

const { signal } = new AbortController();
const options = { signal };

describe.each(carriers)("how a call by %s ends", (_name, open) => {
  let carrier: Carrier;
  beforeAll(async () => {
    carrier = await open();
  });
  afterAll(() => carrier.stop());

  it("a tail ends by its signal without an error, and on the other side", async () => {
    const abort = new AbortController();
    const request = { tenant: "wait", matchers: [], stages: [] };
    const before = carrier.seen.filter((text) => text === "was aborted").length;
    const items = carrier.services.tailer.tail(request, { signal: abort.signal });
    let count = 0;
    for await (const _ of items) if (++count === 2) abort.abort();
    expect(count).toBe(2);
    const ends = () => carrier.seen.filter((text) => text === "was aborted").length;
    while (ends() === before) await pause(1);
  });

  it("a tail that fails keeps the kind of its error, behind what it had", async () => {
    const request = { tenant: "fail", matchers: [], stages: [] };
    let count = 0;
    const drained = (async () => {
      for await (const _ of carrier.services.tailer.tail(request, options)) count++;
    })();
    await expect(drained).rejects.toMatchObject({ code: "rate_limited", detail: { limit: 5 } });
    expect(count).toBe(2);
  });

  it("errors keep their kind and fields", async () => {
    const request = { tenant: "fail", fromNs: 0n, toNs: 1n, matchers: [] };
    const error = await carrier.services.ingester.select(request, options).catch((one) => one);
    expect(error).toBeInstanceOf(SkaldError);
    const { code, status, message, retryAfterSeconds, detail } = error;
    expect([code, status, message, retryAfterSeconds, detail]).toEqual([
      "rate_limited",
      429,
      "too much",
      3,
      { limit: 5 },
    ]);
  });

  it("a signal that is aborted ends the call on the other side", async () => {
    const abort = new AbortController();
    const request = { tenant: "wait", fromNs: 0n, toNs: 1n, matchers: [] };
    const asked = carrier.services.ingester
      .select(request, { signal: abort.signal })
      .catch((error) => error);
    await happened(carrier, "waits");
    abort.abort();
    expect(await asked).toMatchObject({ name: "AbortError" });
    await happened(carrier, "was aborted");
  });
});

describe("an answer that makes no sense", () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  it("is a fault of the other side, not of who asked", async () => {
    const echoes = makeEchoes();
    const blocks = Uint32Array.of(2, 1);
    const rows = [Uint32Array.of(1), Uint32Array.of(1)];
    const ingester = {
      ...echoes.ingester,
      ...scannerOf({ duplicates: async () => ({ blocks, rows }) }),
    };
    const { server, address } = await startTestServices({ ...echoes, ingester });
    const { connection, services } = connectTestServices(address);
    stops.push(
      async () => connection.close(),
      () => server.kill(),
    );
    const newer = {
      kind: "head" as const,
      id: "h",
      tenant: "a",
      minNs: 0n,
      maxNs: 1n,
      view: "v",
      sizeBytes: 1,
    };
    const share = { tenant: "a", actors: [], cost: 0 };
    const asked = services.ingester.run(
      "duplicates",
      { sources: [{ ref: newer }] },
      { signal, share },
    );
    await expect(asked).rejects.toMatchObject({ code: "internal" });
  });
});
