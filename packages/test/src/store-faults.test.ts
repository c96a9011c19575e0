import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type ConditionAnswer, type FaultKind, S3Server } from "@skald/testkit";
import { nowNs, pushJson, queryLines, queryNumber } from "./testing/client.js";
import {
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const bucket = new S3Server();
const every = (fault: FaultKind) => () => void bucket.faults.push({ fault });
const answers = (status: number, code: string) => every({ kind: "status", status, code });
const conditions = (answer: ConditionAnswer) => () => {
  bucket.condition = answer;
};
/** The fault meets every third request, so that a retry mostly gets through. */
const some = (fault: FaultKind) => () => {
  let requests = 0;
  bucket.faults.push({ when: () => requests++ % 3 === 0, fault });
};
const faults: [name: string, begin: () => void][] = [
  ["takes five seconds for an answer", () => (bucket.delayMs = 5000)],
  ["does not answer", every({ kind: "hang" })],
  ["answers 500", answers(500, "InternalError")],
  ["answers 503", answers(503, "ServiceUnavailable")],
  ["asks to slow down", answers(503, "SlowDown")],
  ["refuses access", answers(403, "AccessDenied")],
  ["is gone", answers(404, "NoSuchBucket")],
  ["cuts every answer off", every({ kind: "cut" })],
  ["cuts some answers off", some({ kind: "cut" })],
  ["loses every answer", every({ kind: "lost" })],
  ["loses some answers", some({ kind: "lost" })],
  ["carries some requests out twice", some({ kind: "twice" })],
  ["lists late", () => (bucket.listingsLate = 5)],
  ["ignores conditions", conditions("ignored")],
  ["knows no conditions", conditions("unsupported")],
  ["refuses conditions that hold", conditions("always refused")],
];
const tenantOf = (fault: string) => fault.replaceAll(" ", "-");
const as = (tenant: string) => ({ "x-scope-orgid": tenant });
const flush = async (url: string) => (await fetch(`${url}/flush`, { method: "POST" })).status;
const hoursAgo = (hours: number) => String(BigInt(nowNs()) - BigInt(hours) * 3_600_000_000_000n);
const selector = '{app="a"}';

const flags = () => [
  "-auth.enabled=true",
  `-s3.url=s3://${bucket.accessKeyId}:secret@${bucket.url.slice("http://".length)}/${bucket.bucket}`,
  "-s3.force-path-style",
  "-s3.insecure",
  "-s3.max-retries=1",
  "-s3.http.timeout=1s",
  // No row may have a time in the future, so that rows pushed before a restart are older than it.
  "-validation.create-grace-period=0s",
  // The faults affect merges too.
  "-compactor.compaction-interval=100ms",
  "-compactor.retention-delete-delay=100ms",
];

describe("a bucket that", () => {
  let server: TestServer;
  let startedNs: string;

  /** The bucket has a row of each tenant that is on no local disk. */
  beforeAll(async () => {
    await bucket.open();
    const before = await startServer(makeFolder(), flags());
    for (const [fault] of faults) {
      const row = [hoursAgo(50), "old"] as const;
      expect(await pushJson(before.url, { app: "a" }, [row], as(tenantOf(fault)))).toBe(204);
    }
    expect(await flush(before.url)).toBe(204);
    expect(await before.kill("SIGTERM")).toBe(0);
    server = await startServer(makeFolder(), flags());
    startedNs = nowNs();
  });
  afterAll(async () => {
    await server?.kill("SIGKILL");
    await bucket.close();
  });

  it.each(faults)(
    "%s is no hindrance to what is recent, and loses nothing",
    async (name, begin) => {
      const { url } = server;
      const tenant = as(tenantOf(name));
      const push = (line: string) => pushJson(url, { app: "a" }, [[nowNs(), line]], tenant);
      const recent = () => queryLines(url, selector, { start: startedNs }, tenant);
      expect(await push("recent")).toBe(204);

      begin();
      expect(await push("more")).toBe(204);
      expect(await recent()).toEqual(["recent", "more"]);
      const range = { query: selector, start: hoursAgo(55), end: hoursAgo(45) };
      const old = await fetch(`${url}/loki/api/v1/query_range?${new URLSearchParams(range)}`, {
        headers: tenant,
      });
      const text = await old.text();
      if (old.status === 200) expect(text).toContain('"old"');
      else
        expect({ status: old.status, text }).toEqual({
          status: 503,
          text: expect.stringMatching(/s3:\/\/logs\//),
        });
      await flush(url);
      expect(await push("last")).toBe(204);
      expect(await recent()).toEqual(["recent", "more", "last"]);

      bucket.endFaults();
      await waitFor(async () => (await flush(url)) === 204);
      const all = () => queryLines(url, selector, { start: hoursAgo(60) }, tenant).catch(() => []);
      await waitFor(async () => (await all()).length >= 4);
      expect(await all()).toEqual(["old", "recent", "more", "last"]);
      expect(await queryNumber(url, `sum(count_over_time(${selector}[60h]))`, tenant)).toBe(4);
    },
  );

  it("has, once all is well again, every row once for a process with an empty disk", async () => {
    expect(await server.kill("SIGTERM")).toBe(0);
    const next = await startServer(makeFolder(), flags());
    for (const [fault] of faults)
      expect(
        await queryLines(next.url, selector, { start: hoursAgo(60) }, as(tenantOf(fault))),
      ).toEqual(["old", "recent", "more", "last"]);
    await next.kill("SIGTERM");
  });
});
