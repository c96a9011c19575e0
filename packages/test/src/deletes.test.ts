import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { type FaultKind, S3Server } from "@skald/testkit";
import { getJson, nowNs, pushJson, queryLines, queryNumber, readMetric } from "./testing/client.js";
import { filesBelow, makeFolder, removeFolders, startServer, waitFor } from "./testing/server.js";

afterAll(removeFolders);

const path = "/loki/api/v1/delete";
const secretsOfA = '{app="a"} |= "secret"';
const count = 'sum(count_over_time({app=~".+"}[1h]))';

interface Record {
  readonly request_id: string;
  readonly status: string;
}

async function requestDelete(url: string, query: string, hours = 1): Promise<number> {
  const start = new Date(Date.now() - hours * 3_600_000).toISOString();
  const params = new URLSearchParams({ query, start });
  return (await fetch(`${url}${path}?${params}`, { method: "POST" })).status;
}

it("deleted rows are never seen again: not after kill -9, and not once they left the store", async () => {
  const [first, second, chunks] = [makeFolder(), makeFolder(), makeFolder()];
  const flags = [
    `-common.storage.filesystem.chunk-directory=${chunks}`,
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
  ];
  const lines = ["public 0", "secret 1", "public 2", "secret 3"];
  const push = async (url: string, some: readonly string[]) => {
    for (const app of ["a", "b"]) {
      const values = some.map((line, i) => [nowNs(i * 1000 - 1_000_000_000), line] as const);
      expect(await pushJson(url, { app }, values)).toBe(204);
    }
  };
  const expectDeleted = async (url: string) => {
    expect(await queryLines(url, '{app="a"}')).toEqual(["public 0", "public 2"]);
    expect(await queryLines(url, '{app="b"}')).toEqual(lines);
    expect(await queryNumber(url, count)).toBe(6);
  };

  const before = await startServer(first, flags);
  // Half of the rows are in a segment, the others in a head.
  await push(before.url, lines.slice(0, 2));
  expect((await fetch(`${before.url}/flush`, { method: "POST" })).status).toBe(204);
  await push(before.url, lines.slice(2));
  expect(await queryNumber(before.url, count)).toBe(8);
  expect(await requestDelete(before.url, secretsOfA)).toBe(204);
  await expectDeleted(before.url);
  expect(await before.kill("SIGKILL")).toBe("SIGKILL");

  const again = await startServer(first, flags);
  await expectDeleted(again.url);
  const [record] = await getJson<Record[]>(again.url, path);
  expect(record?.status).toBe("received");
  expect((await fetch(`${again.url}/flush`, { method: "POST" })).status).toBe(204);
  await expectDeleted(again.url);
  expect(await again.kill("SIGTERM")).toBe(0);

  // This process has no local copies, and does not wait for a cancellation.
  const after = await startServer(second, [
    ...flags,
    "-compactor.delete-request-cancel-period=0s",
    "-compactor.compaction-interval=100ms",
    "-compactor.retention-delete-delay=100ms",
  ]);
  await expectDeleted(after.url);
  await waitFor(async () => (await getJson<Record[]>(after.url, path))[0]?.status === "processed");
  await expectDeleted(after.url);
  expect(await readMetric(after.url, "loki_compactor_deleted_lines", { user: "fake" })).toBe(2);
  const cancel = `${after.url}${path}?request_id=${record?.request_id}&force=true`;
  expect((await fetch(cancel, { method: "DELETE" })).status).toBe(400);
  expect(await after.kill("SIGTERM")).toBe(0);
});

it.each<[string, FaultKind, boolean]>([
  ["loses the answer to it", { kind: "lost" }, true],
  ["loses the answer to it and keeps no metadata", { kind: "lost" }, false],
  ["is asked twice by a proxy", { kind: "twice" }, true],
])(
  "a request is stored once, and gone when it is cancelled, by a bucket that %s",
  async (_, fault, keepsMetadata) => {
    const bucket = new S3Server();
    await bucket.open();
    bucket.keepsMetadata = keepsMetadata;
    const { url, kill } = await startServer(makeFolder(), [
      `-s3.url=s3://${bucket.accessKeyId}:secret@${bucket.url.slice("http://".length)}/${bucket.bucket}`,
      "-s3.force-path-style",
      "-s3.insecure",
      "-compactor.retention-enabled",
      "-compactor.delete-request-store=s3",
    ]);
    const stored = () => bucket.keys.filter((key) => key.includes("delete_requests/"));
    const lines = ["public", "secret"];
    const values = lines.map((line, i) => [nowNs(i * 1000 - 1_000_000_000), line] as const);
    expect(await pushJson(url, { app: "a" }, values)).toBe(204);

    const isRequest = ({ method, key }: { method: string; key: string }) =>
      method === "PUT" && key.includes("delete_requests/");
    bucket.faults.push({ fault, when: isRequest, times: 1 });
    expect(await requestDelete(url, secretsOfA)).toBe(204);
    expect(stored()).toHaveLength(1);
    expect(await queryLines(url, '{app="a"}')).toEqual(["public"]);

    const [record, ...others] = await getJson<Record[]>(url, path);
    expect(others).toEqual([]);
    const cancel = `${url}${path}?request_id=${record?.request_id}`;
    expect((await fetch(cancel, { method: "DELETE" })).status).toBe(204);
    expect(stored()).toEqual([]);
    expect(await queryLines(url, '{app="a"}')).toEqual(lines);
    expect(await kill("SIGTERM")).toBe(0);
    await bucket.close();
  },
);

it("deleted rows stay away when the newest index of their day is damaged, also after a restart", async () => {
  const folder = makeFolder();
  const flags = [
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
    "-compactor.delete-request-cancel-period=0s",
    "-ingester.chunks-retain-period=0s",
    "-ingester.flush-check-period=20ms",
  ];
  const often = [...flags, "-compactor.compaction-interval=100ms"];
  const hourNs = 3_600_000_000_000n;
  const ago = (hours: number, i: number) =>
    String(BigInt(nowNs()) - BigInt(hours) * hourNs + BigInt(i));
  const flush = async (url: string) =>
    expect((await fetch(`${url}/flush`, { method: "POST" })).status).toBe(204);
  // The request deletes all rows of one day, and some rows of another.
  const days = [
    ["secret 0", "secret 1"],
    ["public 2", "secret 3"],
  ];
  const indexes = () => filesBelow(folder, ".day");
  const newest = () => {
    const byDay = new Map(indexes().map((file) => [dirname(file), file]));
    return [...byDay.values()];
  };
  const damage = () => {
    for (const file of newest()) {
      const bytes = readFileSync(join(folder, file));
      const at = bytes.length >> 1;
      bytes[at] = (bytes[at] as number) ^ 1;
      writeFileSync(join(folder, file), bytes);
    }
  };
  /** Undefined while queries of a day fail. */
  const read = async (url: string): Promise<string[] | undefined> => {
    const range = { query: '{app="a"}', start: ago(60, 0) };
    const response = await fetch(`${url}/loki/api/v1/query_range?${new URLSearchParams(range)}`);
    const text = await response.text();
    if (response.status === 503) return undefined;
    expect({ text, status: response.status }).toMatchObject({ status: 200 });
    return text.match(/(public|secret) \d/g) ?? [];
  };
  const expectPublic = async (url: string) => {
    let found: string[] | undefined;
    await waitFor(async () => {
      found = await read(url);
      return found !== undefined;
    });
    expect(found).toEqual(["public 2"]);
  };

  let server = await startServer(folder, often);
  for (const [i, lines] of days.entries()) {
    const values = lines.map((line, at) => [ago(i === 0 ? 30 : 0, at), line] as const);
    expect(await pushJson(server.url, { app: "a" }, values)).toBe(204);
    await flush(server.url);
  }
  await waitFor(() => newest().length === 2);
  expect(await requestDelete(server.url, secretsOfA, 50)).toBe(204);
  const metric = (name: string) => readMetric(server.url, `loki_${name}`);
  await waitFor(async () => (await metric("compactor_deleted_lines")) === 3);
  const runs = "boltdb_shipper_compact_tables_operation_total";
  await waitFor(() => filesBelow(join(folder, "ingester"), ".parquet").length === 0);
  const before = await metric(runs);
  await waitFor(async () => (await metric(runs)) > before + 5);
  await expectPublic(server.url);

  const written = newest();
  damage();
  await waitFor(async () => {
    const found = await read(server.url);
    if (found !== undefined) expect(found).toEqual(["public 2"]);
    return newest().every((file) => !written.includes(file));
  });
  await expectPublic(server.url);
  await server.kill("SIGKILL");

  // Compaction runs rarely, so that a query finds the damage.
  damage();
  server = await startServer(folder, [...flags, "-compactor.compaction-interval=1h"]);
  await expectPublic(server.url);
  await server.kill("SIGKILL");

  server = await startServer(folder, [...often, "-compactor.retention-delete-delay=100ms"]);
  await expectPublic(server.url);
  const { url } = server;
  await waitFor(async () => (await getJson<Record[]>(url, path))[0]?.status === "processed");
  damage();
  await expectPublic(url);
  await server.kill("SIGTERM");
});
