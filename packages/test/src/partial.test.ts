import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { makePushBody } from "@skald/testkit";
import { nowNs, queryLines, readMetric } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";

let server: TestServer;
const flags = ["-ingester.flush-on-shutdown=false"];

beforeAll(async () => {
  server = await startServer(makeFolder(), flags);
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const dayNs = 86_400_000_000_000n;
const now = BigInt(nowNs());
const json = { "content-type": "application/json" };
const protobuf = { "content-type": "application/x-protobuf" };

async function push(body: Uint8Array | string, headers: Record<string, string>) {
  const response = await fetch(`${server.url}/loki/api/v1/push`, { method: "POST", headers, body });
  return { status: response.status, text: await response.text() };
}

/** A push in both formats: streams with good entries and entries with every kind of fault, and a stream with bad labels. */
function mixed(app: string) {
  const rows = [
    { ns: now, line: "good 1" },
    { ns: now - 30n * dayNs, line: "too old" },
    { ns: now + 1n, line: "good 2" },
    { ns: now + dayNs, line: "too new" },
    { ns: now + 2n, line: "x".repeat(300_000) },
    { ns: now + 3n, line: "good 3" },
  ];
  const streams = [
    { labels: { app }, rows },
    { labels: { app, long: "v".repeat(3000) }, rows: [{ ns: now, line: "bad labels" }] },
    { labels: { app, part: "2" }, rows: [{ ns: now + 4n, line: "good 4" }] },
  ];
  const text = (labels: object) =>
    `{${Object.entries(labels)
      .map(([name, value]) => `${name}="${value}"`)
      .join(",")}}`;
  return {
    json: JSON.stringify({
      streams: streams.map(({ labels, rows }) => ({
        stream: labels,
        values: rows.map(({ ns, line }) => [`${ns}`, line]),
      })),
    }),
    protobuf: makePushBody(streams.map(({ labels, rows }) => ({ labels: text(labels), rows }))),
  };
}

const good = ["good 1", "good 2", "good 3", "good 4"];

describe.each(["json", "protobuf"] as const)("a partly bad push as %s", (format) => {
  const app = `mixed-${format}`;
  const headers = format === "json" ? json : protobuf;

  it("is refused with every reason, its good entries are stored", async () => {
    const before = await readMetric(server.url, "loki_discarded_samples_total");
    const { status, text } = await push(mixed(app)[format], headers);
    expect(status).toBe(400);
    expect(text).toMatch(/has timestamp too old/);
    expect(text).toMatch(/has timestamp too new/);
    expect(text).toMatch(/max entry size/);
    expect(text).toMatch(/label value too long/);
    expect(await queryLines(server.url, `{app="${app}"}`)).toEqual(good);
    expect((await readMetric(server.url, "loki_discarded_samples_total")) - before).toBe(4);
  });

  it("sent again, as agents do, is stored once", async () => {
    for (let i = 0; i < 3; i++) expect((await push(mixed(app)[format], headers)).status).toBe(400);
    expect(await queryLines(server.url, `{app="${app}"}`)).toEqual(good);
  });
});

describe("a push that is malformed in the middle", () => {
  it.each([
    ["a timestamp that is text", '"yesterday"'],
    ["a timestamp that is a number", `${now}`],
  ])("stores nothing: %s", async (_name, time) => {
    const values = `["${now}","before"],[${time},"bad"],["${now + 1n}","after"]`;
    const body = `{"streams":[{"stream":{"app":"times"},"values":[${values}]}]}`;
    expect((await push(body, json)).status).toBe(400);
    expect(await queryLines(server.url, '{app="times"}')).toEqual([]);
  });
});

describe("what was stored of partly bad pushes", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)("is there once after %s", async (signal) => {
    await server.kill(signal);
    server = await startServer(server.folder, flags);
    for (const format of ["json", "protobuf"])
      expect(await queryLines(server.url, `{app="mixed-${format}"}`)).toEqual(good);
    await push(mixed("mixed-json").json, json);
    expect(await queryLines(server.url, '{app="mixed-json"}')).toEqual(good);
  });

  it("is there once after it went to the store, and when the push comes once more", async () => {
    await fetch(`${server.url}/flush`, { method: "POST" });
    await push(mixed("mixed-json").json, json);
    expect(await queryLines(server.url, '{app="mixed-json"}')).toEqual(good);
    await fetch(`${server.url}/flush`, { method: "POST" });
    expect(await queryLines(server.url, '{app="mixed-json"}')).toEqual(good);
  });
});
