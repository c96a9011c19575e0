import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nowNs, pushJson } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";
import { TailClient } from "./testing/tail-client.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer(makeFolder(), [
    "-auth.enabled=true",
    "-querier.max-concurrent-tail-requests=3",
    "-ingester.per-stream-rate-limit=1GB",
    "-ingester.per-stream-rate-limit-burst=1GB",
    "-distributor.ingestion-rate-limit-mb=1000",
    "-distributor.ingestion-burst-size-mb=1000",
  ]);
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

let tenants = 0;
/** The headers of a tenant that only this test uses. */
const freshTenant = () => ({ "x-scope-orgid": `t${tenants++}` });
const values = (...lines: string[]) => lines.map((line) => [nowNs(), line] as const);

async function push(
  labels: Record<string, string>,
  lines: string[],
  headers: Record<string, string>,
): Promise<void> {
  expect(await pushJson(server.url, labels, values(...lines), headers)).toBe(204);
}

describe("tail", () => {
  it("sends the history, oldest first, and then what comes in, through the stages", async () => {
    const headers = freshTenant();
    await push({ app: "a" }, ["n=1 old", "n=2 old", "n=3 old"], headers);
    const tail = new TailClient(
      server.url,
      { query: '{app="a"} | logfmt | n > 1 | line_format "{{.n}}"', limit: "1" },
      headers,
    );
    expect(await tail.linesOf(1)).toEqual(["3"]);
    await push({ app: "b" }, ["n=8"], headers);
    await push({ app: "a" }, ["n=1", "n=4"], headers);
    await push({ app: "a", pod: "new" }, ["n=5"], headers);
    expect(await tail.linesOf(3)).toEqual(["3", "4", "5"]);
    expect(tail.messages.at(-1)?.streams.at(-1)?.stream).toMatchObject({ pod: "new", n: "5" });
    expect(await tail.close()).toEqual([1005, ""]);
  });

  it("loses no row and sends none twice while pushes go on", async () => {
    const headers = freshTenant();
    const pushes = Array.from({ length: 60 }, (_, i) => i);
    const tails: TailClient[] = [];
    for (const i of pushes) {
      const done = push({ app: "seam" }, [`line ${i}`], headers);
      if (i === 20 || i === 40)
        tails.push(new TailClient(server.url, { query: '{app="seam"}' }, headers));
      await done;
    }
    const want = pushes.map((i) => `line ${i}`).sort();
    for (const tail of tails) {
      expect((await tail.linesOf(want.length)).toSorted()).toEqual(want);
      await tail.close();
    }
  });

  it("holds rows back and sends them in the order of their times", async () => {
    const headers = freshTenant();
    const tail = new TailClient(server.url, { query: '{app="d"}', delay_for: "1" }, headers);
    await tail.opened();
    const base = BigInt(nowNs());
    for (const [i, line] of ["third", "first", "second"].entries()) {
      const at = String(base + [3n, 1n, 2n][i]! * 1_000_000n);
      expect(await pushJson(server.url, { app: "d", i: String(i) }, [[at, line]], headers)).toBe(
        204,
      );
    }
    expect(await tail.linesOf(3)).toEqual(["first", "second", "third"]);
    await tail.close();
  });

  it("tells labels apart by origin where it is asked to", async () => {
    const headers = freshTenant();
    const flags = { ...headers, "x-loki-response-encoding-flags": "categorize-labels" };
    const tail = new TailClient(server.url, { query: '{app="c"} | logfmt' }, flags);
    await tail.opened();
    await push({ app: "c" }, ["k=v"], headers);
    await tail.linesOf(1);
    expect(tail.messages[0]).toEqual({
      streams: [
        {
          stream: { app: "c", service_name: "c" },
          values: [
            [
              expect.any(String),
              "k=v",
              { structuredMetadata: { detected_level: "unknown" }, parsed: { k: "v" } },
            ],
          ],
        },
      ],
      encodingFlags: ["categorize-labels"],
    });
    await tail.close();
  });

  it("sends the old form under the old name", async () => {
    const headers = freshTenant();
    await push({ app: "l" }, ["old"], headers);
    const tail = new TailClient(server.url, { query: '{app="l"}' }, headers, {
      path: "/api/prom/tail",
    });
    await tail.opened();
    while (tail.messages.length === 0)
      await new Promise((resolve) => tail.socket.once("message", resolve));
    expect(tail.messages[0]).toEqual({
      streams: [
        {
          labels: '{app="l", detected_level="unknown", service_name="l"}',
          entries: [{ ts: expect.stringMatching(/^\d{4}-.*Z$/), line: "old" }],
        },
      ],
      dropped_entries: null,
    });
    await tail.close();
  });

  it("pings, and never shows the rows of another tenant", async () => {
    const [own, other] = [freshTenant(), freshTenant()];
    const tail = new TailClient(server.url, { query: '{app=~".+"}' }, own);
    await tail.opened();
    await push({ app: "x" }, ["theirs"], other);
    await push({ app: "x" }, ["ours"], own);
    await new Promise((resolve) => tail.socket.once("ping", resolve));
    expect(await tail.linesOf(1)).toEqual(["ours"]);
    await tail.close();
  });

  it("takes a tenant by subprotocol, as pages in browsers send it, unless a header names one", async () => {
    const headers = freshTenant();
    const protocol = `skald.tenant.${Buffer.from(headers["x-scope-orgid"]).toString("base64url")}`;
    await push({ app: "p" }, ["own"], headers);
    const query = { query: '{app="p"}' };
    const tail = new TailClient(server.url, query, {}, { protocols: [protocol] });
    expect(await tail.linesOf(1)).toEqual(["own"]);
    expect(tail.socket.protocol).toBe(protocol);
    await tail.close();
    const other = freshTenant();
    await push({ app: "p" }, ["of the other"], other);
    const told = new TailClient(server.url, query, other, { protocols: [protocol] });
    expect(await told.linesOf(1)).toEqual(["of the other"]);
    await told.close();
  });

  it.each([
    ["skald.tenant.", "401 no org id"],
    ["skald.tenant.YS9i", "400 tenant ID 'a/b' contains unsupported character '/'"],
    ["other", "401 no org id"],
  ])("refuses the subprotocol %s", async (protocol, text) => {
    const tail = new TailClient(server.url, { query: "{a=`b`}" }, {}, { protocols: [protocol] });
    await expect(tail.opened()).rejects.toThrow(text);
  });

  it("holds up no push for a client that takes nothing, and tells of what it missed", async () => {
    const headers = freshTenant();
    const tail = new TailClient(server.url, { query: '{app="big"}' }, headers);
    await tail.opened();
    tail.socket.pause();
    const lines = Array.from({ length: 100 }, (_, i) => `${i} ${"x".repeat(20_000)}`);
    // The pushes fill the buffers between server and client, and then the queue of the tail.
    for (let i = 0; (await droppedRows()) === 0; i++)
      await push({ app: "big", i: String(i % 20) }, lines, headers);
    tail.socket.resume();
    const total = () =>
      tail.messages.reduce((sum, { dropped_total = 0 }) => sum + dropped_total, 0);
    while (total() < (await droppedRows())) {
      await push({ app: "big", i: "more" }, ["x"], headers);
    }
    const told = tail.messages.flatMap((message) => message.dropped_entries ?? []);
    // More than the message names.
    expect(total()).toBeGreaterThan(told.length);
    expect(told[0]).toEqual({
      timestamp: expect.stringMatching(/^\d{19}$/),
      labels: expect.objectContaining({ app: "big" }),
    });
    await tail.close();
  });
});

/** Resolves with the number of rows that the server left out of tails. */
async function droppedRows(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return Number(/^loki_ingester_tail_dropped_total (\d+)$/m.exec(metrics)![1]);
}

describe("a tail that is refused", () => {
  const query = '{app="x"}';
  const cases: [string, Record<string, string>, Record<string, string>, string][] = [
    ["no tenant", { query }, {}, "401 no org id\n"],
    ["two tenants", { query }, { "x-scope-orgid": "a|b" }, "400 multiple org IDs present"],
    [
      "a long delay",
      { query, delay_for: "6" },
      freshTenant(),
      "400 delay_for can't be greater than 5",
    ],
    [
      "a bad limit",
      { query, limit: "abc" },
      freshTenant(),
      '400 strconv.Atoi: parsing "abc": invalid syntax',
    ],
    ["no query", {}, freshTenant(), "400 parse error : syntax error: unexpected $end"],
  ];
  it.each(cases)("%s before the upgrade", async (_, params, headers, text) => {
    const tail = new TailClient(server.url, params, headers);
    await expect(tail.opened()).rejects.toThrow(text);
  });

  it.each([
    ["a metric query", 'rate({app="x"}[1m])', "only log selector is supported"],
    ["a bad template", '{app="x"} | line_format "{{"', "unclosed action"],
  ])("%s after the upgrade", async (_, metric, text) => {
    const tail = new TailClient(server.url, { query: metric }, freshTenant());
    const [code, reason] = await tail.closed;
    expect([code, reason.includes(text) || reason]).toEqual([1011, true]);
  });

  it("one too many of a tenant", async () => {
    const headers = freshTenant();
    const tails = [1, 2, 3].map(() => new TailClient(server.url, { query }, headers));
    await Promise.all(tails.map((tail) => tail.opened()));
    const [code, reason] = await new TailClient(server.url, { query }, headers).closed;
    expect([code, reason]).toEqual([
      1011,
      "max concurrent tail requests limit exceeded, count > limit (4 > 3)",
    ]);
    await Promise.all(tails.map((tail) => tail.close()));
  });

  it("no upgrade", async () => {
    const response = await fetch(
      `${server.url}/loki/api/v1/tail?query=${encodeURIComponent(query)}`,
      {
        headers: freshTenant(),
      },
    );
    expect([response.status, await response.text()]).toEqual([400, "Bad Request\n"]);
  });

  it("other protocols are answered as if nobody had asked for them", async () => {
    const headers = {
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAMAAABk",
    };
    const status = await new Promise((resolve, reject) => {
      const asked = request(`${server.url}/ready`, { headers }, (response) => {
        response.resume();
        response.once("end", () => resolve(response.statusCode));
      });
      asked.once("error", reject);
      asked.end();
    });
    expect(status).toBe(200);
  });
});
