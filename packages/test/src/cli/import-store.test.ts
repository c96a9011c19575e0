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

/** 0 where a temporary folder goes while it is read. */
function countFiles(folder: string): number {
  try {
    return filesBelow(folder, "").length;
  } catch {
    return 0;
  }
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

describe("skald import loki-store", () => {
  it("can be killed ten times, and a server then answers what Loki did", async () => {
    const name = "zstd-compacted";
    const source = unpack(name);
    const folder = makeFolder();
    const args = ["import", "loki-store", source, "--into", join(folder, "chunks")];
    // One more file at each kill, until a run ends before that.
    let kills = 0;
    for (let files = 1; ; files++) {
      const run = spawn(binSkald, [...args, "--parallel=1"], { stdio: "ignore" });
      let code: number | null | undefined;
      run.once("exit", (exit) => (code = exit));
      await until(() => code !== undefined || countFiles(folder) > files);
      if (code === 0) break;
      run.kill("SIGKILL");
      kills++;
      await until(() => code !== undefined);
    }
    expect(kills).toBeGreaterThanOrEqual(10);
    const last = await runProgram(binSkald, [...args, "-q"]);
    expect(last).toMatchObject({ code: 0, stderr: "" });
    expect(last.stdout).toContain("imported 0 rows");
    const server = await startServer(folder, ["-auth.enabled=true"]);
    const wanted = answersOf(name);
    expect(await rowsOf(server.url, wanted)).toEqual(textsOf(wanted.streams).sort());
    await server.kill("SIGTERM");
  });

  it.each(storeNames)("brings the rows of %s to a server that runs", async (name) => {
    const folder = makeFolder();
    const server = await startServer(folder, ["-auth.enabled=true"]);
    const wanted = answersOf(name);
    expect(await rowsOf(server.url, wanted)).toEqual([]);
    const source = unpack(name);
    const args = ["import", "loki-store", source, "--into", join(folder, "chunks")];
    expect(await runProgram(binSkald, args)).toMatchObject({ code: 0 });
    const rows = textsOf(wanted.streams).sort();
    await waitFor(async () => (await rowsOf(server.url, wanted)).length >= rows.length);
    expect(await rowsOf(server.url, wanted)).toEqual(rows);
    await server.kill("SIGTERM");
  });

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
