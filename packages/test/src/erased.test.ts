import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { S3Server } from "@skald/testkit";
import { getJson, nowNs, pushJson, queryLines } from "./testing/client.js";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  waitFor,
} from "./testing/server.js";

const buckets: S3Server[] = [];
afterEach(() => Promise.all(buckets.splice(0).map((bucket) => bucket.close())));
afterAll(removeFolders);

interface Record {
  readonly query: string;
  readonly status: string;
}

const secret = "hunter2";
const query = `{app="a"} |= "${secret}"`;
const deletePath = "/loki/api/v1/delete";
const flags = [
  "-compactor.retention-enabled",
  "-pattern-ingester.enabled=true",
  "-ingester.chunks-retain-period=0s",
  "-ingester.flush-check-period=20ms",
];
const fast = [
  "-compactor.delete-request-cancel-period=0s",
  "-compactor.compaction-interval=100ms",
  "-compactor.retention-delete-delay=100ms",
];

interface Place {
  readonly flags: readonly string[];
  /** Arguments of `verify` beside the folder. */
  readonly targets: readonly string[];
}

async function openBucket(): Promise<Place> {
  const bucket = new S3Server();
  buckets.push(bucket);
  const endpoint = await bucket.open();
  const access = [
    `-s3.endpoint=${endpoint}`,
    "-s3.force-path-style",
    `-s3.access-key-id=${bucket.accessKeyId}`,
    "-s3.secret-access-key=secret",
  ];
  return {
    flags: [...access, `-s3.buckets=${bucket.bucket}`, "-compactor.delete-request-store=s3"],
    targets: [`s3://${bucket.bucket}`, ...access],
  };
}

const directory = async (): Promise<Place> => ({
  flags: ["-compactor.delete-request-store=filesystem"],
  targets: [],
});

/** Files of a folder that have a text as it is. */
function filesWith(folder: string, text: string): string[] {
  return filesBelow(folder, "").filter((file) => readFileSync(join(folder, file)).includes(text));
}

async function patternsOf(url: string): Promise<string[]> {
  const found = await getJson<{ data: { pattern: string }[] }>(url, "/loki/api/v1/patterns", {
    query: '{app=~".+"}',
  });
  return found.data.map(({ pattern }) => pattern);
}

describe.each([
  ["a directory", directory],
  ["a bucket", openBucket],
] as const)("a request that is processed, in %s", (kind, open) => {
  it("has left nothing in any file", async () => {
    const place = await open();
    const folder = makeFolder();
    const verify = (id: string, ...more: string[]) =>
      runProgram(binSkald, ["verify", `-erased=${id}`, ...more, folder, ...place.targets]);
    const lines = Array.from({ length: 40 }, (_, i) => `user ${i} set the password ${secret}`);
    const others = Array.from({ length: 40 }, (_, i) => `user ${i} went home`);
    const before = await startServer(folder, [...flags, ...place.flags]);
    for (const [app, some] of [
      ["a", lines],
      ["b", others],
    ] as const) {
      const values = some.map((line, i) => [nowNs(i - 1_000_000_000), line] as const);
      expect(await pushJson(before.url, { app }, values)).toBe(204);
    }
    expect((await fetch(`${before.url}/flush`, { method: "POST" })).status).toBe(204);
    await waitFor(async () => (await patternsOf(before.url)).length === 2);
    // The file of patterns is written at the end.
    await before.kill("SIGTERM");
    expect(filesWith(folder, secret)).toEqual(
      expect.arrayContaining([expect.stringContaining("patterns.bin")]),
    );

    const deleting = await startServer(folder, [...flags, ...place.flags]);
    const values = [[nowNs(-500_000_000), `in the log: ${secret}`]] as const;
    expect(await pushJson(deleting.url, { app: "a" }, values)).toBe(204);
    // The bucket's segments are in the cache now.
    expect(await queryLines(deleting.url, '{app="a"}')).toHaveLength(41);
    const start = new Date(Date.now() - 3_600_000).toISOString();
    const asked = await fetch(
      `${deleting.url}${deletePath}?${new URLSearchParams({ query, start })}`,
      { method: "POST" },
    );
    const id = asked.headers.get("x-delete-request-id") as string;
    expect(asked.status).toBe(204);
    // Hidden from this moment, others not.
    expect(await patternsOf(deleting.url)).toEqual(["user <_> went home"]);
    expect(await queryLines(deleting.url, '{app="a"}')).toEqual([]);
    const begun = await verify(id);
    expect(begun.code).toBe(1);
    expect(begun.stdout).toContain("40 rows of the request");
    expect(begun.stdout).toMatch(/\.wal: 1 row of the request/);
    expect(filesBelow(folder, ".slots").length > 0).toBe(kind === "a bucket");
    await deleting.kill("SIGKILL");

    const after = await startServer(folder, [...flags, ...fast, ...place.flags]);
    expect((await fetch(`${after.url}/flush`, { method: "POST" })).status).toBe(204);
    const listed = async (url: string) => (await getJson<Record[]>(url, deletePath))[0];
    await waitFor(async () => (await listed(after.url))?.status === "processed");
    expect(await patternsOf(after.url)).not.toContain(expect.stringContaining("password"));
    expect(await listed(after.url)).toMatchObject({ query });
    expect(await queryLines(after.url, '{app="b"}')).toHaveLength(40);
    await after.kill("SIGTERM");
    const done = await verify(id);
    expect(done).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("nothing of it is left"),
    });
    // The request itself has the text, here and in its copy.
    expect(done.stdout).toMatch(/^note: .*delete_request_redact_period$/m);

    const redacting = await startServer(folder, [
      ...[...flags, ...fast, ...place.flags],
      "-compactor.delete-request-redact-period=0s",
    ]);
    await waitFor(async () => (await listed(redacting.url))?.query !== query);
    expect(await listed(redacting.url)).toMatchObject({
      query: '{__redacted__="true"}',
      status: "processed",
    });
    expect(await queryLines(redacting.url, '{app="a"}')).toEqual([]);
    expect(await redacting.kill("SIGTERM")).toBe(0);
    expect(filesWith(folder, secret)).toEqual([]);

    const unknown = await verify(id);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("-query=") });
    expect(await verify(id, `-query=${query}`)).toMatchObject({ code: 0 });
    // What was set aside may have rows, and so has a file that somebody left.
    writeFileSync(join(folder, "wal", "00000001.wal.16.corrupt"), "x");
    writeFileSync(join(folder, "notes.txt"), `the password is ${secret}`);
    const left = await verify(id, `-query=${query}`);
    expect([left.code, left.stdout.match(/^left: /gm)?.length]).toEqual([1, 2]);
    if (kind !== "a bucket") return;
    // Only the bucket tells whether a cached segment is still stored.
    const alone = ["verify", `-erased=${id}`, `-query=${query}`, folder];
    expect((await runProgram(binSkald, alone)).code).not.toBe(0);
  });
});

it("verify names a request that is not there", async () => {
  const folder = makeFolder();
  const found = await runProgram(binSkald, ["verify", "-erased", "0123abcd", folder]);
  expect(found).toMatchObject({ code: 2, stderr: "there is no delete request 0123abcd\n" });
  expect(await runProgram(binSkald, ["verify", "-erased", "0123abcd"])).toMatchObject({ code: 2 });
});
