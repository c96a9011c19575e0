import { constants, deflateRawSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { makePushBody, rapidResets, snappyLiterals } from "@skald/testkit";
import { getJson, openWire, pushJson, queryStreams } from "./testing/client.js";
import {
  makeFolder,
  peakMemoryBytes,
  removeFolders,
  startServer,
  type TestServer,
} from "./testing/server.js";

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;

let server: TestServer;
/** A second server, which waits only a short time for a request. */
let impatient: TestServer;
let served = 0;
/** Long enough that no push is cut off on a busy machine. */
const patienceMs = 3000;

beforeAll(async () => {
  [server, impatient] = await Promise.all([
    startServer(makeFolder(), ["-server.worker-threads=2"]),
    startServer(makeFolder(), [`-server.http-read-timeout=${patienceMs}ms`]),
  ]);
});

afterAll(async () => {
  await Promise.all([server.kill("SIGTERM"), impatient.kill("SIGTERM")]);
  await removeFolders();
});

const json = { "content-type": "application/json" };
const protobuf = { "content-type": "application/x-protobuf" };
const gzipJson = { ...json, "content-encoding": "gzip" };

async function push(body: Uint8Array | string, headers: Record<string, string>) {
  const response = await fetch(`${server.url}/loki/api/v1/push`, { method: "POST", headers, body });
  return { status: response.status, text: await response.text() };
}

/** The field of a push body with a stream that has labels and no rows. */
const emptyStream = Buffer.from('\x0a\x09\x0a\x07{a="b"}');
const nowNs = () => `${BigInt(Date.now()) * 1_000_000n}`;
const stream = (labels: string, values: string) =>
  `{"streams":[{"stream":${labels},"values":[${values}]}]}`;

/** Checks that the process still runs, is ready, takes a push and answers a query for it. */
async function expectServing({ process, url } = server): Promise<void> {
  expect(process.exitCode).toBeNull();
  const ready = await fetch(`${url}/ready`);
  expect([ready.status, await ready.text()]).toEqual([200, "ready\n"]);
  const line = `still here ${++served}`;
  expect(await pushJson(url, { app: "good" }, [[nowNs(), line]])).toBe(204);
  const found = await queryStreams(url, `{app="good"} |= "${line}"`);
  expect(found.flatMap(({ values }) => values.map(([, text]) => text))).toContain(line);
}

describe("hostile pushes", () => {
  const good = makePushBody([{ labels: '{app="x"}', rows: [{ ns: BigInt(nowNs()), line: "x" }] }]);
  const deep = (open: string, close: string) => open.repeat(100_000) + close.repeat(100_000);

  it.each<[string, Record<string, string>, () => Uint8Array | string, number, RegExp]>([
    ["snappy that is cut off", protobuf, () => good.subarray(0, -3), 400, /snappy/],
    ["snappy that is damaged", protobuf, () => good.map((b, i) => (i % 7 ? b : ~b)), 400, /./],
    ["no snappy at all", protobuf, () => "hello", 400, /snappy/],
    ["nothing", protobuf, () => "", 400, /./],
    ["snappy that says 4 GB", protobuf, () => snappyBomb(2 ** 32 - 1), 413, /too large/],
    ["snappy that says 200 MB", protobuf, () => snappyBomb(200 * MiB), 413, /too large/],
    ["snappy that says 30 MB", protobuf, () => snappyBomb(30 * MiB), 400, /snappy/],
    [
      "snappy whose length never ends",
      protobuf,
      () => new Uint8Array(1000).fill(0xff),
      400,
      /snappy/,
    ],
    ["protobuf that is none", protobuf, () => snappyLiterals(Buffer.from("hello")), 400, /./],
    ["deep arrays", json, () => deep("[", "]"), 400, /./],
    ["deep objects", json, () => `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`, 400, /./],
    [
      "deep arrays within values",
      json,
      () => stream('{"app":"x"}', `["${nowNs()}","x",${deep("[", "]")}]`),
      400,
      /./,
    ],
    [
      "deep arrays under a key that is not looked at",
      json,
      () => `{"extra":${deep("[", "]")},"streams":[]}`,
      400,
      /./,
    ],
    ["a numeric timestamp", json, () => stream('{"app":"x"}', `[${nowNs()},"x"]`), 400, /./],
    ["a timestamp that is text", json, () => stream('{"app":"x"}', '["today","x"]'), 400, /./],
    [
      "a label value of a megabyte",
      json,
      () => stream(`{"app":"${"v".repeat(MiB)}"}`, `["${nowNs()}","x"]`),
      400,
      /label value too long/,
    ],
    [
      "a label name of a megabyte",
      json,
      () => stream(`{"${"n".repeat(MiB)}":"x"}`, `["${nowNs()}","x"]`),
      400,
      /label name too long/,
    ],
    [
      "a line of 8 MB",
      json,
      () => stream('{"app":"x"}', `["${nowNs()}","${"x".repeat(8 * MiB)}"]`),
      400,
      /max entry size '262144' bytes exceeded/,
    ],
    [
      "labels that are not UTF-8",
      protobuf,
      () =>
        makePushBody([
          {
            labels: Buffer.from('{app="\xff\xfe"}', "latin1"),
            rows: [{ ns: BigInt(nowNs()), line: "x" }],
          },
        ]),
      400,
      /./,
    ],
    [
      "200 thousand streams",
      protobuf,
      () => snappyLiterals(Buffer.concat(Array(200_000).fill(emptyStream))),
      413,
      /more than 131072 streams/,
    ],
    ["gzip that is none", gzipJson, () => "hello", 400, /./],
    ["gzip that is cut off", gzipJson, () => gzipSync("{}".repeat(1000)).subarray(0, 20), 400, /./],
    [
      "gzip in gzip",
      gzipJson,
      () => gzipSync(gzipSync(stream('{"app":"x"}', `["${nowNs()}","x"]`))),
      400,
      /./,
    ],
    [
      "another encoding",
      { ...json, "content-encoding": "br" },
      () => "x",
      400,
      /Content-Encoding "br" not supported/,
    ],
  ])("%s", async (_name, headers, body, status, text) => {
    const answer = await push(body(), headers);
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(text);
    expect(answer.text.length).toBeLessThan(100_000);
    await expectServing();
  });

  it("lines that are not UTF-8 are stored with what can be read of them", async () => {
    const rows = [{ ns: BigInt(nowNs()), line: Buffer.from("caf\xe9 \xff\xfe end", "latin1") }];
    expect((await push(makePushBody([{ labels: '{app="bytes"}', rows }]), protobuf)).status).toBe(
      204,
    );
    const [found] = await queryStreams(server.url, '{app="bytes"}');
    expect(found?.values[0]?.[1]).toMatch(/^caf\uFFFD+ \uFFFD+ end$/);
    await expectServing();
  });

  it.each([
    ["gzip bombs of 1 GB", "gzip", 1, GiB],
    ["gzip bombs of 1 GB that say a byte", "gzip", 1, 1],
    ["gzip bombs of 4 GB that say 20 MB", "gzip", 4, 20 * MiB],
    ["deflate bombs of 1 GB", "deflate", 1, 0],
  ])("%s are refused in bounded memory", async (_name, encoding, gigabytes, stated) => {
    const deflated = deflatedZeros(gigabytes * 1024);
    const body = encoding === "gzip" ? gzipOf(deflated, stated) : deflated;
    const headers = { ...json, "content-encoding": encoding };
    const answers = await Promise.all(Array.from({ length: 4 }, () => push(body, headers)));
    for (const { status, text } of answers) {
      expect(text).toMatch(/request body too large/);
      expect(status).toBe(413);
    }
    await expectServing();
  });

  it("20 thousand new streams in one push are taken or refused, and others are served", async () => {
    const streams = Array.from({ length: 20_000 }, (_, i) => ({
      labels: `{flood="${i}"}`,
      rows: [{ ns: BigInt(nowNs()), line: "x" }],
    }));
    const body = makePushBody(streams);
    const [flood, other] = await Promise.all([openWire(server.port), openWire(server.port)]);
    await flood.send(
      `POST /loki/api/v1/push HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await flood.send(body.subarray(0, -1));
    const answers = [flood.until("HTTP/1.1 "), other.until("ready\n")];
    await Promise.all([
      flood.send(body.subarray(-1)),
      other.send("GET /ready HTTP/1.1\r\nHost: a\r\n\r\n"),
    ]);
    expect((await Promise.all(answers))[0]).toMatch(/^HTTP\/1\.1 (204|429) /);
    flood.socket.destroy();
    other.socket.destroy();
    await expectServing();
  });
});

describe("hostile HTTP", () => {
  it("a body, a form or a head that never ends is cut after the read timeout", async () => {
    const endless = [
      "POST /loki/api/v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{",
      "POST /loki/api/v1/query HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\nq",
      "GET /ready HTTP/1.1\r\nHost: a\r\nX-A: ",
    ];
    const outlive = async (text: string) => {
      const wire = await openWire(impatient.port);
      await wire.send(text);
      // Bytes arrive all the time, so that only the limit for the whole request ends it.
      const drip = setInterval(() => void wire.send("x"), 100);
      await wire.closed();
      clearInterval(drip);
    };
    await Promise.all(endless.map(outlive));
    await expectServing(impatient);
  });

  it("200 connections that send slowly leave room for others", async () => {
    const { port } = impatient;
    const wires = await Promise.all(Array.from({ length: 200 }, () => openWire(port)));
    await Promise.all(
      wires.map((wire) =>
        wire.send(
          "POST /loki/api/v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n{",
        ),
      ),
    );
    await expectServing(impatient);
    await Promise.all(wires.map((wire) => wire.closed()));
    await expectServing(impatient);
  });

  it.each([
    ["garbage", "\x00\x01\x02garbage\r\n\r\n", 400],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400],
    ["a bad method", "PUSH! / HTTP/1.1\r\nHost: a\r\n\r\n", 400],
    [
      "two lengths",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      400,
    ],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      400,
    ],
    [
      "a bad chunk",
      "POST /loki/api/v1/push HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      400,
    ],
    [
      "a path that cannot be decoded",
      "GET /loki/api/v1/label/%E0%A4%A/values HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      400,
    ],
    [
      "a path out of the tree",
      "GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      301,
    ],
  ])("%s", async (_name, text, status) => {
    const wire = await openWire(server.port);
    await wire.send(Buffer.from(text, "latin1"));
    expect(await wire.closed()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await expectServing();
  });

  it.each([
    ["a query string of 100 MB", "GET /loki/api/v1/query?query=", 431],
    ["a header of 100 MB", "GET /ready HTTP/1.1\r\nHost: a\r\nX-A: ", 431],
    ["a header of 2 MB", "GET /ready HTTP/1.1\r\nHost: a\r\nX-A: ", 431],
  ])("%s is refused as soon as it is too much", async (name, start, status) => {
    const total = name.includes("100") ? 100 * MiB : 2 * MiB;
    const wire = await openWire(server.port);
    await wire.send(start);
    const part = Buffer.alloc(MiB, "a");
    for (let sent = 0; sent < total && !wire.socket.destroyed; sent += part.length)
      await wire.send(part);
    const text = await wire.closed();
    // The refusal may be lost, because the server resets a connection that is still written to.
    if (text !== "") expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await expectServing();
  });

  it.each([
    ["a form", "/loki/api/v1/query", "application/x-www-form-urlencoded", 11 * MiB],
    ["a push", "/loki/api/v1/push", "application/json", 101 * MiB],
  ])("%s beyond its limit is 413", async (_name, path, type, bytes) => {
    const body = Buffer.alloc(bytes, "a");
    const headers = { "content-type": type };
    const response = await fetch(server.url + path, { method: "POST", headers, body });
    expect(response.status).toBe(413);
    expect(await response.text()).toMatch(/request body too large/);
    await expectServing();
  });

  it("connections of HTTP/2 whose requests are reset at once are cut", async () => {
    const attack = async () => {
      const wire = await openWire(server.port);
      await wire.send(rapidResets(20_000, { ":path": "/loki/api/v1/query_range" }));
      await wire.closed();
    };
    await Promise.all([attack(), attack(), attack()]);
    await expectServing();
  });

  it("a query of a megabyte is refused with a short text", async () => {
    const query = `{app="${"x".repeat(MiB)}"`;
    const body = new URLSearchParams({ query });
    const response = await fetch(`${server.url}/loki/api/v1/query_range`, { method: "POST", body });
    expect(response.status).toBe(413);
    expect((await response.text()).length).toBeLessThan(10_000);
    await expectServing();
  });

  it("a query nested 100 thousand times is refused", async () => {
    const query = `${"(".repeat(100_000)}rate({app="x"}[1m])${")".repeat(100_000)}`;
    const body = new URLSearchParams({ query });
    const response = await fetch(`${server.url}/loki/api/v1/query`, { method: "POST", body });
    expect(response.status).toBe(400);
    expect((await response.text()).length).toBeLessThan(10_000);
    await expectServing();
  });

  it("100 thousand parameters are refused", async () => {
    const body = new URLSearchParams({ query: '{app="good"}' });
    for (let i = 0; i < 100_000; i++) body.append(`p${i}`, "x");
    const response = await fetch(`${server.url}/loki/api/v1/query_range`, { method: "POST", body });
    expect(response.status).toBe(400);
    await response.arrayBuffer();
    await expectServing();
  });
});

describe("after all that", () => {
  it("nothing of the refused pushes is there, and no thread was lost", async () => {
    expect(await queryStreams(server.url, '{app="x"}')).toEqual([]);
    const apps = await getJson<{ data: string[] }>(server.url, "/loki/api/v1/label/app/values");
    expect(apps.data).toEqual(["bytes", "good"]);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(/^loki_worker_threads_lost_total 0$/m);
    expect(server.log()).not.toMatch(/"level":"error"/);
  });

  it("the process never took the memory of bombs that are unpacked", () => {
    // The process takes about a gigabyte; each thread would take two more for the smallest bomb.
    expect(peakMemoryBytes(server)).toBeLessThan(1.5 * GiB);
  });
});

/** A snappy block that announces more bytes than it has. */
function snappyBomb(bytes: number): Uint8Array {
  const header: number[] = [];
  for (let rest = bytes; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      header.push(rest);
      break;
    }
    header.push((rest % 128) | 128);
  }
  return Buffer.concat([Buffer.from(header), Buffer.alloc(10_000)]);
}

/** Raw deflate of some megabytes of zeros; it has a kilobyte for each megabyte. */
function deflatedZeros(megabytes: number): Buffer {
  const zeros = Buffer.alloc(MiB);
  // A block that ends with a full flush does not depend on others, so it can be repeated.
  const block = deflateRawSync(zeros, { finishFlush: constants.Z_FULL_FLUSH });
  return Buffer.concat([...new Array<Buffer>(megabytes - 1).fill(block), deflateRawSync(zeros)]);
}

/** The gzip frame around raw deflate; its checksum is wrong, but the server stops before it. */
function gzipOf(deflated: Buffer, statedBytes: number): Buffer {
  const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(statedBytes, 4);
  return Buffer.concat([head, deflated, tail]);
}
