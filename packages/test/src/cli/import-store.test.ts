import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "@jest/globals";
import { S3Server, until } from "@skald/testkit";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  waitFor,
} from "../testing/server.js";

const stores = fileURLToPath(new URL("../../../loki-store/testdata/", import.meta.url));
const storeNames = readdirSync(stores)
  .filter((file) => file.endsWith(".tar.gz"))
  .map((file) => file.slice(0, -".tar.gz".length));

interface Answers {
  readonly from: string;
  readonly to: string;
  readonly streams: readonly {
    readonly stream: Record<string, string>;
    readonly values: readonly (readonly [string, string, object])[];
  }[];
}

afterAll(removeFolders);

function answersOf(name: string): Answers {
  const file = readFileSync(join(stores, `${name}.answers.json.gz`));
  return JSON.parse(gunzipSync(file).toString()) as Answers;
}

function unpack(name: string): string {
  const folder = join(makeFolder(), "loki");
  mkdirSync(folder);
  execFileSync("tar", ["xzf", join(stores, `${name}.tar.gz`), "-C", folder]);
  return folder;
}

/** Rows as texts, sorted; what a server answers for all streams with a label, asked stream by stream. */
async function rowsOf(url: string, { from, to, streams }: Answers): Promise<string[]> {
  const rows: string[] = [];
  for (const { stream } of streams) {
    const matchers = Object.entries(stream).map(
      ([name, value]) => `${name}=${JSON.stringify(value)}`,
    );
    const params = { query: `{${matchers.join(",")}}`, start: from, end: to, limit: "5000" };
    const answer = await fetch(`${url}/loki/api/v1/query_range?${new URLSearchParams(params)}`, {
      headers: {
        "x-scope-orgid": "shop",
        "x-loki-response-encoding-flags": "categorize-labels",
      },
    });
    const { data } = (await answer.json()) as { data: { result: Answers["streams"] } };
    rows.push(...textsOf(data.result.filter((one) => isSame(one.stream, stream))));
  }
  return rows.sort();
}

function textsOf(streams: Answers["streams"]): string[] {
  return streams.flatMap(({ stream, values }) =>
    values.map((value) => JSON.stringify([Object.entries(stream).sort(), ...value])),
  );
}

/** The key of a file in a bucket: on disk Loki encodes the last part of the names of chunks. */
function keyOf(file: string): string {
  if (file.startsWith("index/")) return file;
  const at = file.lastIndexOf("/") + 1;
  return file.slice(0, at) + Buffer.from(file.slice(at), "base64").toString();
}

/** The files of a store; none while a folder of it goes away. */
function filesIn(folder: string): string[] {
  try {
    return filesBelow(folder, "");
  } catch {
    return [];
  }
}

/** Steps of an import that are done: segments that were begun, that are in the store, and that the ledger knows. */
function stepsIn(folder: string): number {
  return filesIn(folder).reduce((steps, file) => {
    if (/^tenant=.*loki-.*\.parquet$/.test(file)) return steps + 1;
    if (!file.startsWith("index/loki_import/")) return steps;
    return steps + (readFileSync(join(folder, file), "utf8").includes('"isDone":true') ? 2 : 1);
  }, 0);
}

/**
 * Kills ten runs: each after one more step than the one before, or at its first new file when that step was done earlier.
 * Rejects when a run ends before it is killed.
 */
async function killTenTimes(args: readonly string[], into: string): Promise<void> {
  for (let kill = 1; kill <= 10; kill++) {
    const before = new Set(filesIn(into));
    const stepsBefore = stepsIn(into);
    const isWritten = (file: string) => file.startsWith(".tmp/") && !before.has(file);
    const isTime = (steps: number) =>
      steps >= kill && (steps > stepsBefore || filesIn(into).some(isWritten));
    const run = spawn(binSkald, [...args, "--parallel=1"], { stdio: "ignore" });
    let ended: number | string | null | undefined;
    run.once("exit", (code, signal) => (ended = code ?? signal));
    await until(() => ended !== undefined || isTime(stepsIn(into)));
    run.kill("SIGKILL");
    await until(() => ended !== undefined);
    expect([kill, ended]).toEqual([kill, "SIGKILL"]);
  }
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

describe("skald import loki-store", () => {
  it.each(storeNames)(
    "can be killed ten times, and a server that runs has the rows of %s then",
    async (name) => {
      const folder = makeFolder();
      const server = await startServer(folder, ["-auth.enabled=true"]);
      const wanted = answersOf(name);
      expect(await rowsOf(server.url, wanted)).toEqual([]);
      const into = join(folder, "chunks");
      const args = ["import", "loki-store", unpack(name), "--into", into];
      await killTenTimes(args, into);
      const last = await runProgram(binSkald, [...args, "-q"]);
      expect(last).toMatchObject({ code: 0, stderr: "" });
      expect(last.stdout).toMatch(/chunks are imported, \d+ of them before, 0 could not be read/);
      const again = await runProgram(binSkald, [...args, "-q"]);
      expect(again.stdout).toContain("imported 0 rows");
      const rows = textsOf(wanted.streams).sort();
      await waitFor(async () => (await rowsOf(server.url, wanted)).length >= rows.length);
      expect(await rowsOf(server.url, wanted)).toEqual(rows);
      await server.kill("SIGTERM");
    },
  );

  it("copies from bucket to bucket", async () => {
    const name = "snappy-legacy";
    const bucket = new S3Server();
    const access = [
      ...[`-s3.endpoint=${await bucket.open()}`, "-s3.force-path-style"],
      ...[`-s3.access-key-id=${bucket.accessKeyId}`, "-s3.secret-access-key=secret"],
    ];
    const source = unpack(name);
    for (const file of filesBelow(source, ""))
      bucket.put(`loki/${keyOf(file)}`, readFileSync(join(source, file)));
    const place = (prefix: string) => `s3://${bucket.bucket}/${prefix}`;
    const args = ["import", "loki-store", place("loki"), "--into", place("skald"), ...access];
    expect(await runProgram(binSkald, args)).toMatchObject({ code: 0 });
    const again = await runProgram(binSkald, args);
    expect(again.stdout).toContain("imported 0 rows");
    const flags = [`-s3.buckets=${bucket.bucket}`, "-store.object-prefix=skald"];
    const server = await startServer(makeFolder(), ["-auth.enabled=true", ...access, ...flags]);
    const wanted = answersOf(name);
    expect(await rowsOf(server.url, wanted)).toEqual(textsOf(wanted.streams).sort());
    await server.kill("SIGTERM");
    await bucket.close();
  });

  it("takes the tenants that are asked for", async () => {
    const source = unpack("gzip");
    const run = (...tenants: string[]) => {
      const into = join(makeFolder(), "chunks");
      return runProgram(binSkald, ["import", "loki-store", source, "--into", into, ...tenants]);
    };
    expect((await run("--tenant=other")).stdout).toContain("imported 0 rows");
    expect((await run("--tenant=other,shop")).stdout).not.toContain("imported 0 rows");
  });

  it("is refused without a target, and for a folder that is no store", async () => {
    const folder = makeFolder();
    const without = await runProgram(binSkald, ["import", "loki-store", folder]);
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining("--into") });
    const none = await runProgram(binSkald, ["import", "loki-store", folder, "--into", folder]);
    expect(none.code).not.toBe(0);
    expect(none.stderr).toContain("the source has no index files");
  });
});
