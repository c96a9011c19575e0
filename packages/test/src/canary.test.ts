import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { freePort } from "@skald/testkit";
import { WebSocketServer } from "ws";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
} from "./testing/server.js";

let server: TestServer;
let proxy: Server;
/** Changes the body of an answer to a query. */
let spoil: (body: string, url: string) => string = (body) => body;
/** Answers the next pushes with 500 after they were stored. */
let lostAnswers = 0;

beforeAll(async () => {
  server = await startServer(makeFolder(), ["-server.worker-threads=1"]);
  proxy = createServer(async (request, answer) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method = "GET", url = "" } = request;
    const found = await fetch(`${server.url}${url}`, {
      method,
      headers: { "content-type": request.headers["content-type"] ?? "" },
      ...(method === "POST" ? { body: Buffer.concat(parts) } : {}),
    });
    const body = await found.text();
    const isLost = url.endsWith("/push") && lostAnswers-- > 0;
    answer
      .writeHead(isLost ? 500 : found.status)
      .end(method === "GET" ? spoil(body, url) : undefined);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await server.kill("SIGTERM");
  await removeFolders();
});

async function canary(url: string, name: string, ...flags: string[]) {
  const settings = ["-interval=50ms", "-check-interval=300ms", "-for=3s", "-port=0", "-json"];
  const argv = ["canary", url, `-name=${name}`, ...settings, ...flags];
  const { code, stdout, stderr } = await runProgram(binSkald, argv);
  return { code, stderr, ...JSON.parse(stdout || "{}") };
}

const throughProxy = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

describe("skald canary", () => {
  it("finds every line by every way, and serves its metrics", async () => {
    const port = await freePort();
    const run = canary(server.url, "good", `-port=${port}`, "-for=4s");
    let metrics = "";
    for (let i = 0; i < 100 && !/latency_seconds_count [1-9]/.test(metrics); i++) {
      await pause(50);
      metrics = await fetch(`http://127.0.0.1:${port}/metrics`).then(
        (answer) => answer.text(),
        () => "",
      );
    }
    expect(metrics).toMatch(/^loki_canary_entries_total [1-9]/m);
    expect(metrics).toContain('loki_canary_missing_entries_total{way="tail"} 0');
    const wrong = { missing: 0, duplicates: 0, unexpected: 0, failures: 0 };
    const report = await run;
    expect(report).toMatchObject({ code: 0, stderr: "", ...wrong });
    expect(report.checks).toBeGreaterThan(2);
    expect(report.pushed).toBeGreaterThan(200);
  });

  it.each([
    [
      "missing",
      (body: string) => body.replace(/\["\d+","line \d+ at \d+"\],?/, "").replace(",]", "]"),
    ],
    ["duplicates", (body: string) => body.replace(/\["\d+","line \d+ at \d+"\]/, "$&,$&")],
    ["unexpected", (body: string) => body.replace(/"line (\d+) at /, '"line 9$1 at ')],
    [
      "missing",
      (body: string, url: string) =>
        url.includes("count_over") ? body.replace(/"\d+"\]/, '"3"]') : body,
    ],
  ])("counts lines that are %s", async (kind, change) => {
    spoil = change;
    const report = await canary(throughProxy(), `spoilt-${kind}`);
    spoil = (body) => body;
    expect(report.code).toBe(1);
    expect(report[kind]).toBeGreaterThan(0);
    expect(report.stderr).toMatch(/lines (are missing|are doubled|were never pushed)/);
  });

  it("tells how the copies of a line differ, and who was asked", async () => {
    spoil = (body, url) => {
      const answer = url.includes("query_range") ? JSON.parse(body) : undefined;
      const first = answer?.data.result[0];
      if (first === undefined) return body;
      const copy = { stream: { ...first.stream, odd: "1" }, values: [first.values[0]] };
      answer.data.result.push(copy);
      return JSON.stringify(answer);
    };
    const { stderr } = await canary(throughProxy(), "copies");
    spoil = (body) => body;
    expect(stderr).toMatch(
      /ward: 1 lines are doubled, lines (\d+) to \1, once with {"canary":.+}, once with {.+"odd":"1"}, ingesters: 1, their lines: \d+, /,
    );
  });

  it("counts lines that a tail does not send", async () => {
    const silent = new WebSocketServer({ server: proxy });
    const report = await canary(throughProxy(), "silent-tail", "-wait=500ms");
    silent.close();
    expect(report).toMatchObject({ code: 1, duplicates: 0, unexpected: 0 });
    expect(report.missing).toBeGreaterThan(0);
    expect(report.stderr).toMatch(/ tail: 20 lines are missing, after line \d+\n/);
    expect(report.stderr).not.toMatch(/(forward|backward|count): /);
  });

  it("repeats a push whose answer was lost, and finds each line once", async () => {
    lostAnswers = 2;
    const report = await canary(throughProxy(), "lost-answers");
    expect(report).toMatchObject({ code: 0, missing: 0, duplicates: 0, unexpected: 0 });
    expect(report.failures).toBeGreaterThanOrEqual(2);
    expect(report.stderr).toContain("push failed: 500");
  });

  it("checks its lines and tells its counts when it gets SIGTERM", async () => {
    const end = new AbortController();
    const argv = ["canary", server.url, "-name=ended", "-interval=20ms", "-port=0"];
    const run = runProgram(binSkald, argv, { end: end.signal });
    await pause(2000);
    end.abort();
    const { code, stdout } = await run;
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^pushed [1-9]\d*, checks [1-9]\d*, missing 0, duplicates 0, unexpected 0, failures 0\n$/,
    );
  });

  it("ends with 2 if nothing answers, or the command line is wrong", async () => {
    expect(await canary("http://127.0.0.1:9", "nobody", "-for=1s")).toMatchObject({
      code: 2,
      checks: 0,
    });
    for (const flags of [["-interval=soon"], ["-nonsense"], ["-header=x"]])
      expect(await canary(server.url, "bad", ...flags)).toMatchObject({ code: 2 });
  });
});
