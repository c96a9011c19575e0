import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { freePort } from "@skald/testkit";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { pushJson } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";

/** Half an hour ago, in whole seconds. */
const startMs = Math.floor(Date.now() / 1000 - 1800) * 1000;
const at = (seconds: number, ns = 0) =>
  `${BigInt(startMs + seconds * 1000) * 1_000_000n + BigInt(ns)}`;
const time = (seconds: number) => new Date(startMs + seconds * 1000).toISOString().slice(0, 19);
const lineCount = 60;

let server: TestServer;
beforeAll(async () => {
  server = await startServer(makeFolder());
  const api = Array.from({ length: lineCount }, (_, i): [string, string] => [
    at(i, 7),
    i % 2 === 0
      ? `level=info msg="request <${i}> & more" status=${200 + i}`
      : JSON.stringify({ level: "error", msg: `broken ${i}`, status: 500 }),
  ]);
  expect(await pushJson(server.url, { app: "api", env: "prod" }, api)).toBe(204);
  // Five lines of one time, to page over.
  const web = Array.from({ length: 5 }, (_, i): [string, string] => [at(30, 7), ` tick ${i} \n`]);
  expect(await pushJson(server.url, { app: "web-shop", env: "prod" }, web)).toBe(204);
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const range = () => ["--from", `${time(0)}Z`, "--to", `${time(lineCount)}Z`, "-z", "UTC"];

function skald(
  argv: readonly string[],
  options: { input?: string; env?: Record<string, string> } = {},
) {
  const env = { SKALD_ADDR: server.url, SKALD_CONFIG: "/nonexistent", ...options.env };
  return runProgram(binSkald, argv, { ...options, env });
}

describe("lines", () => {
  const web = '{app="web-shop"} |= "tick 3"';
  const labels = 'app="web-shop", detected_level="unknown", env="prod", service_name="web-shop"';
  const object = {
    app: "web-shop",
    detected_level: "unknown",
    env: "prod",
    service_name: "web-shop",
  };
  it.each([
    ["raw", [], " tick 3 \n"],
    ["default", [], `${time(30)}Z {} tick 3\n`],
    ["default", ["--include-common-labels"], `${time(30)}Z {${labels}} tick 3\n`],
    ["default", ["--include-label", "app"], `${time(30)}Z {app="web-shop"} tick 3\n`],
    ["default", ["--labels-length=5"], `${time(30)}Z {}    tick 3\n`],
    ["default", ["--no-labels"], `${time(30)}Z tick 3\n`],
    ["default", ["--output-timestamp-format=rfc3339nano"], `${time(30)}.000000007Z {} tick 3\n`],
    ["jsonl", [], `{"labels":{},"line":" tick 3 \\n","timestamp":"${time(30)}.000000007Z"}\n`],
    ["jsonl", ["--no-labels"], `{"line":" tick 3 \\n","timestamp":"${time(30)}.000000007Z"}\n`],
    [
      "jsonl",
      ["--include-common-labels"],
      `{"labels":${JSON.stringify(object)},"line":" tick 3 \\n","timestamp":"${time(30)}.000000007Z"}\n`,
    ],
    [
      "logfmt",
      ["--include-label=app"],
      `time=${time(30)}.000000007Z app=web-shop line=" tick 3 \\n"\n`,
    ],
    [
      "csv",
      ["--cols=time,app,line"],
      `time,app,line\n${time(30)}.000000007Z,web-shop," tick 3 \n"\n`,
    ],
    ["table", ["--cols=app,line"], "app       line\nweb-shop   tick 3\n"],
    ["pretty", [], `-- ${time(0).slice(0, 10)}\n${time(30).slice(11)}.000     web-shop tick 3\n`],
  ])("-o %s %j", async (form, flags, wanted) => {
    const { code, stdout } = await skald(["query", web, ...range(), "-o", form, ...flags]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: wanted });
  });

  it("the labels of streams are as wide as the longest, and shared ones go to stderr", async () => {
    const query = '{env="prod"} |~ "tick 0|request <30>" | drop detected_level, service_name';
    const { stdout, stderr } = await skald(["query", query, ...range(), "--forward"]);
    expect(stdout).toBe(
      `${time(30)}Z {app="api"}      level=info msg="request <30> & more" status=230\n` +
        `${time(30)}Z {app="web-shop"} tick 0\n`,
    );
    expect(stderr).toContain('Common labels: {env="prod"}\n');
    expect(stderr).toContain(`${time(0)}Z to ${time(lineCount)}Z\n`);
  });

  it.each([
    ["backward", []],
    ["forward", ["--forward"]],
  ])("pages %s through all lines, each once, also those of one time", async (_name, flags) => {
    const argv = ["query", '{env="prod"}', ...range(), "-o", "raw", "-q", "--limit=0", "--batch=3"];
    const { code, stdout, stderr } = await skald([...argv, ...flags]);
    const lines = stdout.split("\n").slice(0, -1);
    expect({ code, stderr, count: lines.length }).toEqual({
      code: 0,
      stderr: "",
      count: lineCount + 5,
    });
    expect(new Set(lines).size).toBe(lineCount + 5);
    expect(lines[flags.length === 0 ? lineCount + 4 : 0]).toContain("request <0>");
  });

  it("says how many lines the limit left out", async () => {
    const { stdout, stderr } = await skald([
      "query",
      '{app="api"}',
      ...range(),
      "-o",
      "raw",
      "--limit=2",
    ]);
    expect(stdout.split("\n")).toHaveLength(3);
    expect(stderr).toMatch(
      /^2 newest of 60 lines · read [\d.]+ \w+ · \d+ ms · --limit 0 for all$/m,
    );
  });

  it("-o parquet is a file, with the columns of the server's", async () => {
    const path = join(makeFolder(), "x.parquet");
    const line = `"$0" "$1" query '{app="web-shop"} |= "tick 3"' "\${@:2}" > ${path}`;
    const argv = [process.execPath, binSkald, ...range(), "-o", "parquet"];
    const env = { ...process.env, SKALD_ADDR: server.url, SKALD_CONFIG: "/nonexistent" };
    execFileSync("bash", ["-c", line, ...argv], { env, stdio: "ignore" });
    const [row, ...others] = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
    expect(others).toEqual([]);
    expect(row).toMatchObject({ line: " tick 3 \n", labels: { app: "web-shop", env: "prod" } });
  });

  it("downloads parts, merges them in order, and leaves parts that are there", async () => {
    const prefix = `${makeFolder()}/part`;
    const argv = ["query", '{app="api"}', ...range(), "-o", "raw", "-q", "--parallel-duration=20s"];
    const parts = [
      "--parallel-max-workers=3",
      "--part-path-prefix",
      prefix,
      "--merge-parts",
      "--keep-parts",
    ];
    const first = await skald([...argv, ...parts]);
    expect(first.stdout.split("\n")).toHaveLength(lineCount + 1);
    expect(first.stdout).toMatch(/^\{.*broken 59.*\n.*request <58>/);
    const unreached = { env: { SKALD_ADDR: "http://127.0.0.1:9" } };
    expect((await skald([...argv, ...parts], unreached)).stdout).toBe(first.stdout);
  });
});

describe("values", () => {
  const query = 'sum by (app) (count_over_time({env="prod"}[1m]))';
  const end = Math.floor(startMs / 1000) + lineCount;
  it.each([
    ["default", JSON.stringify([{ metric: { app: "api" }, value: [end, "60"] }], null, 2)],
    ["jsonl", JSON.stringify([{ metric: { app: "api" }, value: [end, "60"] }], null, 2)],
    ["csv", `time,app,value\n${time(lineCount)}Z,api,60\n`],
    ["table", "app  value\napi     60\n"],
  ])("at one time, -o %s", async (form, wanted) => {
    const one = query.replace('env="prod"', 'app="api"');
    const argv = ["query", one, "--at", `${time(lineCount)}Z`, "-o", form, "-z", "UTC"];
    const cost = expect.stringMatching(/^read [\d.]+ \w+ · \d+ ms\n$/);
    expect(await skald(argv)).toEqual({ code: 0, stdout: wanted, stderr: cost });
    const instant = ["instant-query", one, "--now", `${time(lineCount)}Z`, "-o", form, "-z", "UTC"];
    expect((await skald(instant)).stdout).toBe(wanted);
  });

  it("are a Parquet file with -o parquet", async () => {
    const path = join(makeFolder(), "x.parquet");
    const line = `"$0" "$1" query '${query}' "\${@:2}" > ${path}`;
    const argv = [process.execPath, binSkald, "--at", `${end}`, "-o", "parquet"];
    const env = { ...process.env, SKALD_ADDR: server.url, SKALD_CONFIG: "/nonexistent" };
    execFileSync("bash", ["-c", line, ...argv], { env, stdio: "ignore" });
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
    expect(rows).toContainEqual({
      ...{ timestamp: new Date(end * 1000), labels: { app: "api" }, value: lineCount },
    });
  });

  it("of a range are a chart", async () => {
    const { stdout } = await skald(["query", query, ...range(), "--step=1s", "-o", "chart"]);
    expect(stdout).toMatch(/^ +60 ┤/m);
    expect(stdout).toMatch(/^● \{app="api"\} \d+$/m);
    expect(stdout).toMatch(/[\u2801-\u28ff]/);
  });
});

describe("lists", () => {
  it.each([
    [["labels"], "app\nenv\nservice_name\n"],
    [["labels", "app"], "api\nweb-shop\n"],
    [["labels", "app", "--counts"], "app       streams\napi             1\nweb-shop        1\n"],
    [["labels", "--query", '{app="api"}', "app"], "api\n"],
    [["labels", "app", "-o", "jsonl"], '"api"\n"web-shop"\n'],
    [["series", '{app="api"}'], '{app="api", env="prod", service_name="api"}\n'],
    [["series", '{app="api"}', "-o", "jsonl"], '{"app":"api","env":"prod","service_name":"api"}\n'],
    [
      ["series", "{}", "--analyze-labels"],
      "Total Streams:  2\nUnique Labels:  3\n\nLabel Name    Unique Values  Found In Streams\napp           2              2\nservice_name  2              2\nenv           1              2\n",
    ],
    [["fields", '{app="api"}', "msg", "--limit", "1"], /^.+\n$/],
    [["detected-fields", '{app="api"}'], /^label: status\t\ttype: int\t\tcardinality: \d+$/m],
    [["fields", '{app="api"}', "-o", "table"], /^status +int +\d+ +/m],
    [
      ["stats", '{app="web-shop"}'],
      /^\{\n {2}bytes: \d+B\n {2}chunks: 1\n {2}streams: 1\n {2}entries: 5\n\}\n$/,
    ],
    [
      ["stats", '{app="web-shop"}', "-o", "jsonl"],
      /^\{"bytes":\d+,"chunks":1,"entries":5,"streams":1\}\n$/,
    ],
    [
      ["volume", '{env="prod"}', "--by", "app", "-o", "table"],
      /^app +value\napi +\d+\nweb-shop +\d+\n$/,
    ],
    [
      ["volume_range", '{env="prod"}', "--step=1h"],
      /^\[\n {2}\{\n {4}"metric": \{\n {6}"env": "prod"/,
    ],
  ] as const)("%j", async (argv, wanted) => {
    const { code, stdout, stderr } = await skald([...argv, ...range(), "-q"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    if (typeof wanted === "string") expect(stdout).toBe(wanted);
    else expect(stdout).toMatch(wanted);
  });
});

describe("explain", () => {
  const query = '{app="api"} |= "broken 7"';
  it("tells what a query holds and reads", async () => {
    const { code, stdout, stderr } = await skald(["explain", query, ...range()]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^selector +streams +lines +bytes +segments +blocks +blocks to read +bytes to read\n\{app="api"\} +1 +60 +[\d.]+ \w+ +1 +1 +1 +[\d.]+ \w+\n$/,
    );
    expect(stderr).toContain('filters of segments look for "broken 7"\n');
  });

  it("has the server's answer as JSON, and reads plain files", async () => {
    const json = await skald(["explain", query, ...range(), "-o", "jsonl", "-q"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ kind: "log", parts: [{ entries: 60 }] });
    const input = "a\nb\n";
    const local = await skald(["explain", "--stdin", '|= "a"', "-q", "-o", "csv"], { input });
    expect(local.stdout).toMatch(/\n"\{filename=~"".\+""\}",1,2,/);
  });

  it("names the limit that would refuse the query: 3", async () => {
    const small = await startServer(makeFolder(), ["-store.max-query-length=1h"]);
    const argv = ["explain", query, "--since=2h", "-q", "--addr", small.url];
    const { code, stderr } = await skald(argv);
    expect(code).toBe(3);
    expect(stderr).toMatch(/^the server would refuse it: .*time range exceeds the limit/);
    await small.kill("SIGTERM");
  });
});

describe("what goes wrong", () => {
  it("a mistake in a query is shown with its place: 3", async () => {
    const { code, stdout, stderr } = await skald(["query", 'sum(rat({a="b"}[1m]))', "-q"]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/^col 5: .*\n {2}sum\(rat.*\n {6}\^\n {2}did you mean rate\?\n$/);
  });

  it("fmt shows it without a server, and formats: 1 and 0", async () => {
    const env = { SKALD_ADDR: "http://127.0.0.1:9" };
    const bad = await skald(["fmt", '{a="b"} | jsn'], { env });
    expect(bad).toMatchObject({ code: 1, stdout: "" });
    expect(bad.stderr).toContain("did you mean json?");
    const good = await skald(["fmt"], { env, input: 'rate({a="b"}[1m])' });
    expect(good).toEqual({ code: 0, stdout: 'rate({a="b"}[1m])\n', stderr: "" });
    expect((await skald(["fmt", "--check", '{a = "b"}'], { env })).code).toBe(1);
  });

  it.each([
    ["a zone that is none: 2", ["query", "{}", "-z", "Mars"], 2, /no zone Mars/],
    ["a time that is none: 2", ["query", "{}", "--from", "soon"], 2, /--from: soon is no time/],
    ["Parquet of a tail: 2", ["tail", '{app="api"}', "-o", "parquet"], 2, /for a whole answer/],
    ["a chart of labels: 2", ["labels", "-o", "chart"], 2, /for the answers of queries/],
    ["a chart of lines: 2", ["query", '{app="api"}', "-o", "chart"], 2, /for metric queries/],
    ["a server that is not there: 4", ["labels", "--addr", "127.0.0.1:9"], 4, /was not reached/],
    ["no query: 2", ["query"], 2, /name a query/],
    ["a context that is not there: 2", ["labels", "--context", "x"], 2, /no context x/],
  ])("%s", async (_name, argv, code, wanted) => {
    const found = await skald(argv);
    expect(found).toMatchObject({ code, stdout: "" });
    expect(found.stderr).toMatch(wanted);
  });

  it("a reader that leaves is a quiet end", async () => {
    const shell = `"$0" "$1" query '{env="prod"}' --since 1h --limit 0 --batch 1 -o raw -q | head -n 1; echo "$\{PIPESTATUS[0]}"`;
    const child = spawn("bash", ["-c", shell, process.execPath, binSkald], {
      env: { ...process.env, SKALD_ADDR: server.url },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part) => {
        text += part;
      });
    await once(child, "close");
    expect(text).toMatch(/^.*broken 59.*\n0\n$/);
  });
});

describe("tail", () => {
  it("goes on at its last line after the server was restarted, and ends with 130", async () => {
    const port = await freePort();
    const folder = makeFolder();
    const flags = [`-server.http-listen-port=${port}`];
    let own = await startServer(folder, flags);
    const push = (line: string) => pushJson(own.url, { app: "t" }, [[`${Date.now()}000000`, line]]);
    await push("one");
    const child = spawn(process.execPath, [binSkald, "tail", '{app="t"}', "-o", "raw"], {
      env: { ...process.env, SKALD_ADDR: own.url },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (part) => {
      out += part;
    });
    child.stderr.on("data", (part) => {
      err += part;
    });
    await waitFor(() => out === "one\n");
    // A query before the tail would miss what comes in between.
    expect(await (await fetch(`${own.url}/metrics`)).text()).not.toContain("query_range");
    await push("two");
    await waitFor(() => out === "one\ntwo\n");
    await own.kill("SIGTERM");
    await waitFor(() => err.includes("the connection was lost"));
    own = await startServer(folder, flags);
    await push("three");
    await waitFor(() => out.includes("three"));
    await push("four");
    await waitFor(() => out.includes("four"));
    expect(out).toBe("one\ntwo\nthree\nfour\n");
    expect(err).toMatch(/connected again; \d lines had come meanwhile/);
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
    await own.kill("SIGTERM");
  });

  it("says why the server closed the connection, and ends where it refuses the first", async () => {
    const one = "-querier.max-concurrent-tail-requests=1";
    const own = await startServer(makeFolder(), [one]);
    const env = { ...process.env, SKALD_ADDR: own.url };
    const argv = [binSkald, "tail", '{app="t"}'];
    const child = spawn(process.execPath, argv, { env, stdio: ["ignore", "ignore", "pipe"] });
    let err = "";
    child.stderr.on("data", (part) => {
      err += part;
    });
    const openTails = async () => (await fetch(`${own.url}/metrics`)).text();
    await waitFor(async () => (await openTails()).includes("loki_querier_tail_active 1"));
    expect(await runProgram(binSkald, argv.slice(1), { env })).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(
        "max concurrent tail requests limit exceeded, count > limit (2 > 1)",
      ),
    });
    await own.kill("SIGTERM");
    await waitFor(() => err.includes("connecting again"));
    expect(err).toContain("the connection was lost: the server is stopping; connecting again\n");
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
  });
});

describe("the connection", () => {
  let stub: Server;
  let seen: IncomingHttpHeaders;
  let failures = 0;
  beforeAll(async () => {
    stub = createServer((request, answer) => {
      seen = { ...request.headers, url: request.url };
      answer.statusCode = failures-- > 0 ? 503 : 200;
      answer.end('{"data":[]}');
    });
    await new Promise<void>((resolve) => stub.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => {
    stub.closeAllConnections();
    stub.close();
  });
  const url = () => `http://127.0.0.1:${(stub.address() as AddressInfo).port}`;
  const ask = (argv: readonly string[], env: Record<string, string> = {}) =>
    runProgram(binSkald, ["labels", ...argv], { env: { SKALD_CONFIG: "/nonexistent", ...env } });
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

  it.each([
    ["a tenant", ["--org-id=a|b"], {}, { "x-scope-orgid": "a|b" }],
    ["SKALD_ before LOKI_", [], { LOKI_ORG_ID: "l", SKALD_ORG_ID: "s" }, { "x-scope-orgid": "s" }],
    ["a flag before both", ["--org-id=f"], { SKALD_ORG_ID: "s" }, { "x-scope-orgid": "f" }],
    ["a user", ["--username=u", "--password=p:w"], {}, { authorization: basic("u:p:w") }],
    ["a token", [], { LOKI_BEARER_TOKEN: "t" }, { authorization: "Bearer t" }],
    [
      "another header",
      ["--auth-header=X-Auth"],
      { LOKI_BEARER_TOKEN: "t" },
      { "x-auth": "Bearer t" },
    ],
    ["any header", ["--header", "X-Y: z: z"], {}, { "x-y": "z: z" }],
    ["tags", ["--query-tags=a=b"], {}, { "x-query-tags": "a=b" }],
    ["no cache", ["--nocache"], {}, { "cache-control": "no-cache" }],
    ["compression", ["--compress"], {}, { "accept-encoding": "gzip, deflate" }],
  ])("sends %s", async (_name, argv, env, wanted) => {
    expect(await ask(argv, { SKALD_ADDR: url(), ...env })).toMatchObject({ code: 0 });
    expect(seen).toMatchObject(wanted);
  });

  it("goes through a proxy", async () => {
    const env = { SKALD_ADDR: "http://logs.invalid", LOKI_HTTP_PROXY_URL: url() };
    expect(await ask([], env)).toMatchObject({ code: 0 });
    expect(seen.host).toBe("logs.invalid");
    expect(seen.url).toMatch(/\/loki\/api\/v1\/labels\?/);
  });

  it("repeats what was answered with 5xx as often as asked", async () => {
    failures = 2;
    const argv = ["--retries=2", "--min-backoff=1ms"];
    expect(await ask(argv, { SKALD_ADDR: url() })).toMatchObject({ code: 0 });
    failures = 2;
    expect(await ask(["--retries=1", "--min-backoff=1ms"], { SKALD_ADDR: url() })).toMatchObject({
      code: 4,
    });
    failures = 0;
  });
});
