// Measures what a bucket costs queries: a process with an empty disk reads from a server that delays every answer.
//
//     node packages/test/bench/bucket.mjs [MB=100] [DELAY_MS=20]
//     node packages/storage/bench/swift.mjs node packages/test/bench/bucket.mjs 100      against OpenStack Swift
//
// 2 cores, Node 24, 100 MB, 20 ms: see docs/decisions/009-segments-in-a-bucket.md.
import { fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { S3Server } from "@skald/testkit";

const megabytes = Number(process.argv[2] ?? 100);
const delayMs = Number(process.argv[3] ?? 20);

if (process.argv[2] === "server") {
  const server = new S3Server();
  process.on("message", (delay) => {
    server.delayMs = delay;
  });
  await server.open();
  process.send(`s3://${server.accessKeyId}:secret@${new URL(server.url).host}/${server.bucket}`);
} else await main();

async function main() {
  const folder = mkdtempSync(join(tmpdir(), "skald-bucket-"));
  const own = process.env.SKALD_TEST_S3 === undefined;
  const bucket = own ? fork(fileURLToPath(import.meta.url), ["server"]) : undefined;
  const children = own ? [bucket] : [];
  try {
    const url = own
      ? await new Promise((resolve) => bucket.once("message", resolve))
      : await makeBucket(process.env.SKALD_TEST_S3);
    const first = await start(join(folder, "a"), url, children);
    const { startMs } = await fill(first.url);
    let began = performance.now();
    await fetch(`${first.url}/flush`, { method: "POST" });
    const objects = await operations(first.url, "upload");
    const parts = await operations(first.url, "upload_part");
    process.stdout.write(
      `flush of ${megabytes} MB: ${since(began)} ms, ${objects} puts, ${parts} parts\n`,
    );
    await stop(first.child);
    const second = await start(join(folder, "b"), url, children);
    bucket?.send(delayMs);
    let gets = 0;
    const range = `start=${startMs}000000&end=${startMs + 3_600_000}000000`;
    const at = `time=${startMs + 3_600_000}000000`;
    for (const [name, path] of [
      ["newest 10 rows", `query_range?limit=10&${range}&query={app="a"}`],
      ["count by headers", `query?${at}&query=sum by (app) (count_over_time({app=~".%2B"}[1h]))`],
      ["a rare word", `query_range?limit=10&${range}&query={app=~".%2B"} |= "needle"`],
      [
        "count of a word",
        `query?${at}&query=sum(count_over_time({app=~".%2B"} |= "level=error" [1h]))`,
      ],
    ]) {
      for (const round of ["cold", "warm"]) {
        began = performance.now();
        const answer = await fetch(`${second.url}/loki/api/v1/${path}`);
        const { data } = await answer.json();
        const ms = since(began);
        const now = await operations(second.url, "get_range");
        const { bytesSent, entriesFound, downloadTime } = data.stats.cache.chunk;
        const fetched = `${now - gets} GETs, ${(bytesSent / 1e6).toFixed(1)} MB fetched`;
        const found = `${entriesFound} pages found, waited ${(downloadTime / 1e6).toFixed(0)} ms`;
        process.stdout.write(
          `${name.padEnd(18)}${round}  ${String(ms).padStart(6)} ms  ${fetched}, ${found}\n`,
        );
        gets = now;
      }
    }
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

function since(began) {
  return Math.round(performance.now() - began);
}

async function start(folder, url, children) {
  const main = fileURLToPath(new URL("../../skald/bundle/main.js", import.meta.url));
  const args = [
    main,
    "-server.http-listen-port=0",
    "-server.http-listen-address=127.0.0.1",
    `-common.path-prefix=${folder}`,
    `-s3.url=${url}`,
    "-s3.force-path-style",
    "-s3.insecure",
    "-validation.reject-old-samples=false",
    "-distributor.ingestion-rate-limit-mb=1000",
    "-distributor.ingestion-burst-size-mb=1000",
    "-ingester.per-stream-rate-limit=1GB",
    "-ingester.per-stream-rate-limit-burst=1GB",
  ];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (log += text));
  for (let tries = 0; tries < 600; tries++) {
    const port = /"port":(\d+)[^\n]*"msg":"listening"/.exec(log)?.[1];
    const ready = port && (await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined));
    if (ready?.ok) return { child, url: `http://127.0.0.1:${port}` };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(log);
}

/** Creates the bucket of a URL unless it exists. */
async function makeBucket(url) {
  const [, key, secret, host, bucket] = /^s3:\/\/([^:]+):([^@]+)@([^/]+)\/(.+)$/.exec(url);
  const store = new URL(
    "../../storage/node_modules/@aws-sdk/client-s3/dist-cjs/index.js",
    import.meta.url,
  );
  const { S3Client, CreateBucketCommand } = await import(store);
  const client = new S3Client({
    ...{ endpoint: `http://${host}`, region: "us-east-1", forcePathStyle: true },
    credentials: { accessKeyId: decodeURIComponent(key), secretAccessKey: secret },
  });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return url;
}

/** Resolves with the number of requests of a kind that a process has sent. */
async function operations(url, operation) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const name = "loki_objstore_bucket_operations_total";
  return Number(
    new RegExp(`^${name}\\{operation="${operation}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0,
  );
}

function stop(child) {
  return new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill("SIGTERM");
  });
}

/** Pushes the lines of an hour, in bodies of about a megabyte. */
async function fill(url) {
  const startMs = Date.now() - 3_500_000;
  const lines = 5_000;
  let n = 0;
  for (let body = 0; body < megabytes; body++) {
    const streams = ["a", "b", "c", "d"].map((app) => ({
      stream: { app },
      values: Array.from({ length: lines / 4 }, () => {
        const ms = startMs + Math.floor((n++ / (megabytes * lines)) * 3_400_000);
        return [`${ms}${String(n % 1_000_000).padStart(6, "0")}`, lineOf(n)];
      }),
    }));
    const answer = await fetch(`${url}/loki/api/v1/push`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ streams }),
    });
    if (answer.status !== 204) throw new Error(await answer.text());
  }
  return { startMs };
}

function lineOf(n) {
  const id = (Math.imul(n, 0x9e3779b1) >>> 0).toString(16);
  const level = n % 50 === 0 ? "error" : "info";
  const word = n % 100_003 === 0 ? " needle" : "";
  return `level=${level} ts=${n} caller=server.go:${n % 97} trace=${id}${id} method=GET path=/api/v1/items/${n % 1009} status=${n % 7 ? 200 : 500} duration=${n % 311}ms bytes=${(n * 7919) % 100_000} user=user-${n % 503}${word} agent="client/1.2 (x86; linux)" region=eu-${n % 5}`;
}
