import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { everyTarget, wholeApi } from "./index.js";
import { type HostileRequest, hostileRequests } from "./testing/hostile-requests.js";
import { sendHostile } from "./testing/send-hostile.js";

/** CPU time of the main thread that one request may take, and one that is as large as the limits allow. */
const maxMs = 10;
/** Pages that show the whole process. */
const maxPageMs = 30;
const maxLargeMs = 50;
/** One of 40,000 streams, which the server knows already or refuses; it goes on in steps. */
const maxManyStreamsMs = 150;
/** One that takes longer is sent again: code is compiled and garbage is collected when nobody asks for it. */
const tries = 12;
const requests = testRuns(400);
const MiB = 1024 * 1024;

type Asked = Pick<HostileRequest, "method" | "url" | "headers" | "body">;

const folder = mkdtempSync(join(tmpdir(), "skald-cpu-"));
const main = fileURLToPath(new URL("./main.js", import.meta.url));
const child = spawn(
  process.execPath,
  [
    main,
    "-server.http-listen-port=0",
    "-server.http-listen-address=127.0.0.1",
    `-common.path-prefix=${folder}`,
    everyTarget,
    "-auth.enabled",
    "-pattern-ingester.enabled",
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
    "-querier.multi-tenant-queries-enabled",
  ],
  { cwd: folder, stdio: ["ignore", "ignore", "pipe"] },
);
const agent = new Agent({ keepAlive: true });
let port = 0;

beforeAll(async () => {
  for await (const chunk of child.stderr.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    port = Number(/"port":(\d+)[^\n]*"msg":"listening"/.exec(chunk)?.[1] ?? 0);
    if (port > 0) break;
  }
  child.stderr.resume();
  let isReady = false;
  while (!isReady) isReady = (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
}, 60_000);

afterAll(async () => {
  agent.destroy();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
  rmSync(folder, { recursive: true, force: true });
});

/** CPU time that the main thread of the process has had; other load does not change it. */
function cpuMs(): number {
  const text = readFileSync(`/proc/${child.pid}/task/${child.pid}/schedstat`, "utf8");
  return Number(text.split(" ", 1)[0]) / 1e6;
}

/** The least that a request took in some tries. */
async function costOf(asked: Asked, limitMs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < tries && least > limitMs; i++) {
    const before = cpuMs();
    await sendHostile(asked, { agent, port });
    least = Math.min(least, cpuMs() - before);
  }
  return least;
}

const isLinux = process.platform === "linux";
const linux = isLinux ? it : it.skip;

describe("the CPU time of the main thread", () => {
  linux(
    `is at most ${maxMs} ms for each of ${requests} hostile requests`,
    async () => {
      const random = seededRandom(testSeed());
      const next = hostileRequests({
        ...{ api: wholeApi(), random, maxBodyBytes: 64 * 1024, nowMs: Date.now() },
      });
      const dear: string[] = [];
      for (let i = 0; i < requests; i++) {
        const asked = next();
        const limitMs = asked.endpoint?.paths.includes("/metrics") ? maxPageMs : maxMs;
        const ms = await costOf(asked, limitMs);
        if (ms > limitMs)
          dear.push(`${ms.toFixed(1)} ms: ${asked.method} ${asked.url.slice(0, 300)}`);
      }
      expect(dear).toEqual([]);
    },
    60_000 + requests * 200,
  );

  linux.each(largeRequests())(
    "is bounded for %s",
    async (_name, asked, limitMs = maxLargeMs) => {
      expect(await costOf(asked, limitMs)).toBeLessThanOrEqual(limitMs);
    },
    60_000,
  );
});

function largeRequests(): [name: string, asked: Asked, limitMs?: number][] {
  const tenant = { "x-scope-orgid": "shop" };
  const json = { ...tenant, "content-type": "application/json" };
  const form = { ...tenant, "content-type": "application/x-www-form-urlencoded" };
  const ns = `${Date.now()}000000`;
  const push = (text: string, gzip = false): Asked => ({
    ...{ method: "POST", url: "/loki/api/v1/push" },
    headers: gzip ? { ...json, "content-encoding": "gzip" } : json,
    body: gzip ? gzipSync(text) : Buffer.from(text),
  });
  const query = (body: string): Asked => ({
    ...{ method: "POST", url: "/loki/api/v1/query_range", headers: form },
    body: Buffer.from(body),
  });
  const rules = (text: string): Asked => ({
    ...{ method: "POST", url: "/loki/api/v1/rules/large" },
    headers: { ...tenant, "content-type": "application/yaml" },
    body: Buffer.from(`name: large\n${text}`),
  });
  /** Takes long to compile. */
  const classes = `{a="none"} |~ "(?i)${"\\\\pL".repeat(16_000)}"`;
  const stream = (labels: string, values: string) =>
    `{"streams":[{"stream":${labels},"values":[${values}]}]}`;
  const row = `["${ns}","x"]`;
  const many = (count: number, text: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => text(i)).join();
  return [
    ["a form of escapes", query(`query=${"%41".repeat(170_000)}&a=${"%41".repeat(170_000)}`)],
    ["a form of many fields", query("a=b&".repeat(16_000))],
    ["a form that is too large", query("+".repeat(9 * MiB))],
    ["a push of blanks", push(`${stream('{"a":"b"}', row)}${" ".repeat(30 * MiB)}`, true)],
    [
      "a push of 70,000 rows",
      push(
        stream(
          '{"a":"b"}',
          many(70_000, () => row),
        ),
      ),
    ],
    [
      "a push of 40,000 streams",
      push(`{"streams":[${many(40_000, (i) => `{"stream":{"n":"${i}"},"values":[${row}]}`)}]}`),
      maxManyStreamsMs,
    ],
    [
      "a push of a line that is too long",
      push(stream('{"a":"b"}', `["${ns}","${"x".repeat(MiB)}"]`)),
    ],
    [
      "a push of metadata",
      push(
        stream(
          '{"a":"b"}',
          many(20_000, (i) => `["${ns}","x",{"n${i % 100}":"v"}]`),
        ),
      ),
    ],
    [
      "a push of 10,000 names of metadata",
      push(
        stream(
          '{"a":"names"}',
          many(100, (row) => `["${ns}","x",{${many(100, (i) => `"n${row * 100 + i}":"v"`)}}]`),
        ),
      ),
    ],
    ...[1500, 8000].map((count): [string, Asked] => [
      `a query of ${count} terms`,
      query(`query=${encodeURIComponent(`{a="b"} ${'|= "zq" '.repeat(count)}`)}`),
    ]),
    ["a query of classes", query(`query=${encodeURIComponent(classes)}`)],
    ...[
      "format_query",
      "query",
      "series",
      "labels",
      "detected_fields",
      "patterns",
      "index/volume",
    ].map((path): [string, Asked] => [
      `${path} with a query of 64 KB`,
      {
        ...{ method: "POST", url: `/loki/api/v1/${path}`, headers: form },
        body: Buffer.from(
          `query=${encodeURIComponent(classes)}&match[]=${encodeURIComponent(classes)}`,
        ),
      },
    ]),
    [
      "a list of streams for 1,000 selectors",
      {
        ...{ method: "POST", url: "/loki/api/v1/series", headers: form },
        body: Buffer.from(many(1000, (i) => `match[]={a="b${i}"}`).replaceAll(",", "&")),
      },
    ],
    [
      "a delete request of 64 KB",
      {
        ...{ method: "POST", headers: tenant, body: undefined },
        url: `/loki/api/v1/delete?start=1&query=${encodeURIComponent(classes)}`,
      },
    ],
    ...[10_000, 20_000].map((count): [string, Asked] => [
      `rules of ${count} labels`,
      rules(`labels:\n${many(count, (i) => `  k${i}: v\n`).replaceAll(",", "")}rules: []\n`),
    ]),
    [
      "1,000 rules",
      rules(
        `rules:\n${many(1000, (i) => `- record: r${i}\n  expr: sum(rate({a="b"}[1m]))\n`).replaceAll(",", "")}`,
      ),
    ],
  ];
}
