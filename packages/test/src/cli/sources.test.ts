import { readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { S3Server } from "@skald/testkit";
import { pushJson } from "../testing/client.js";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
} from "../testing/server.js";

afterAll(removeFolders);

const env = { SKALD_ADDR: "http://127.0.0.1:9", SKALD_CONFIG: "/nonexistent" };
const skald = (argv: readonly string[], input?: string, cwd?: string) =>
  runProgram(binSkald, argv, {
    env,
    ...(input === undefined ? {} : { input }),
    ...(cwd === undefined ? {} : { cwd }),
  });

const day = "2020-05-01T10:00";
const lines = [
  `{"ts":"${day}:00Z","level":"info","status":200,"ms":10}`,
  `{"ts":"${day}:01Z","level":"error","status":503,"ms":30}`,
  `{"ts":"${day}:02Z","level":"error","status":500,"ms":20}`,
  "",
].join("\n");

describe("--stdin", () => {
  it.each([
    [
      "a query that begins with its first stage",
      ["query", "| json | status >= 500 | line_format `{{.ms}}`"],
      "30\n20\n",
    ],
    ["a filter first", ["query", '!= "info" | json | line_format `{{.status}}`'], "503\n500\n"],
    ["{} for all lines", ["query", "{} | json | ms < 20 | line_format `{{.ms}}`"], "10\n"],
    ["no query", ["query"], lines],
    [
      "a selector, which labels the lines",
      ["query", '{app="x"} |= "503" | line_format `{{.app}}`'],
      "x\n",
    ],
    ["the flag before the command", ["query", "| json | ms > 20 | line_format `{{.ms}}`"], "30\n"],
  ])("takes %s", async (name, [command = "", ...query], wanted) => {
    const flags = ["--stdin", "-o", "raw", "-q"];
    const argv = name.includes("before")
      ? [...flags, command, ...query]
      : [command, ...query, ...flags];
    expect(await skald(argv, lines)).toEqual({ code: 0, stdout: wanted, stderr: "" });
  });

  it("answers metric queries", async () => {
    const query = "sum by (level) (sum_over_time({} | json | unwrap ms [1m]))";
    const argv = ["query", query, "--stdin", "--at", `${day}:30Z`, "-o", "csv", "-z", "UTC", "-q"];
    const { stdout } = await skald(argv, lines);
    expect(stdout).toBe(`time,level,value\n${day}:30Z,error,50\n${day}:30Z,info,10\n`);
  });

  it("leaves nothing behind, and shows mistakes", async () => {
    const found = await skald(["query", "--stdin", "| jsn", "-q"], lines);
    expect(found).toMatchObject({ code: 3, stdout: "" });
    expect(found.stderr).toContain("did you mean json?");
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("skald-local-"))).toEqual([]);
  });
});

describe("--files", () => {
  it("asks files by a pattern; each has its name as a label", async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, "a.log"), lines);
    writeFileSync(join(folder, "b.log"), `${day}:05Z plain\n${day}:05Z plain\n`);
    writeFileSync(join(folder, "c.txt"), "other\n");
    const files = ["--files", "*.log", "-q"];
    const volume = await skald(["labels", "filename", ...files], undefined, folder);
    expect(volume.stdout).toBe("a.log\nb.log\n");
    const raw = await skald(
      ["query", '{filename="b.log"}', "-o", "raw", ...files],
      undefined,
      folder,
    );
    expect(raw.stdout).toBe(`${day}:05Z plain\n${day}:05Z plain\n`);
    const stats = await skald(["stats", "{}", "-o", "jsonl", ...files], undefined, folder);
    expect(JSON.parse(stats.stdout)).toMatchObject({ entries: 5, streams: 2 });
  });

  it.each([
    ["a file that is not there", ["--files", "/nonexistent"], /there is no \/nonexistent/],
    ["a pattern without files", ["--files", "*.nothing"], /no file is/],
    ["two sources", ["--files", "x", "--stdin"], /give one of/],
    ["a folder that is none", ["--dir", "/nonexistent"], /is no folder/],
    ["a folder without segments", ["--dir", "."], /has no segments/],
  ])("refuses %s: 2", async (_name, argv, wanted) => {
    const found = await skald(["query", "{}", ...argv], "", makeFolder());
    expect(found).toMatchObject({ code: 2, stdout: "" });
    expect(found.stderr).toMatch(wanted);
  });
});

describe("--dir", () => {
  it("asks a bucket, below a prefix", async () => {
    const bucket = new S3Server();
    const endpoint = await bucket.open();
    const access = [
      ...[`-s3.endpoint=${endpoint}`, "-s3.force-path-style"],
      ...[`-s3.access-key-id=${bucket.accessKeyId}`, "-s3.secret-access-key=secret"],
    ];
    const place = [`-s3.buckets=${bucket.bucket}`, "-store.object-prefix=deep/logs"];
    const server = await startServer(makeFolder(), [...access, ...place]);
    await pushJson(server.url, { app: "kept" }, [[`${Date.now()}000000`, "hello"]]);
    await server.kill("SIGTERM");
    const flags = access.flatMap((one) => ["--dir-flag", one]);
    const ask = (prefix: string) =>
      skald([
        ...["query", '{app="kept"}', "-o", "raw", "-q", "--org-id=fake", ...flags],
        ...["--dir", `s3://${bucket.bucket}/${prefix}`],
      ]);
    expect(await ask("deep/logs/")).toEqual({ code: 0, stdout: "hello\n", stderr: "" });
    expect(await ask("other")).toEqual({ code: 0, stdout: "", stderr: "" });
    await bucket.close();
  });

  it("asks a store without a server, and changes nothing in it", async () => {
    const folder = makeFolder();
    const server = await startServer(folder);
    const now = Date.now();
    const values = Array.from({ length: 500 }, (_, i): [string, string] => [
      `${BigInt(now - i * 1000) * 1_000_000n}`,
      `n=${i} level=${i % 5 === 0 ? "error" : "info"}`,
    ]);
    await pushJson(server.url, { app: "kept" }, values);
    const asked = ['{app="kept"} | logfmt | level="error"', "--since=1h", "--limit=0", "-q"];
    const before = await runProgram(binSkald, ["query", ...asked], {
      env: { SKALD_ADDR: server.url },
    });
    await server.kill("SIGTERM");
    const chunks = join(folder, "chunks");
    const files = filesBelow(chunks, "");
    expect(files.some((name) => name.endsWith(".parquet"))).toBe(true);
    expect(await skald(["query", ...asked, "--dir", chunks])).toEqual(before);
    expect(before.stdout.split("\n")).toHaveLength(101);
    const series = await skald(["series", "{}", "--dir", chunks, "-q"]);
    expect(series.stdout).toBe('{app="kept", service_name="kept"}\n');
    expect(filesBelow(chunks, "")).toEqual(files);
    const seriesOf = (tenant: string) =>
      skald(["series", "{}", "--dir", chunks, "-q", "--org-id", tenant]);
    expect(await seriesOf("other")).toMatchObject({ code: 0, stdout: "" });
    expect(await seriesOf("fake|other")).toMatchObject({
      ...{ code: 0, stdout: '{__tenant_id__="fake", app="kept", service_name="kept"}\n' },
    });
  });
});
