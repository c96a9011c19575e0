// Contracts over gRPC between two processes: pushes of two sizes, and outcomes of scans. Prints one table.
import { fork } from "node:child_process";
import { decodeOutcome, encodeOutcome } from "@skald/contracts";
import { emptyReadStats } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { GrpcConnection, GrpcServer, remoteIngester, serveIngester } from "../dist/index.js";

const MiB = 1024 * 1024;
const bounds = { keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000 };
if (process.argv[2] === "server") await serve();
else await measure();

function logOutcome(rows) {
  const label = { names: ["app", "pod"], values: ["a", "p"] };
  const noLabels = { names: [], values: [] };
  const zeros = new Float64Array(rows);
  const bytes = Buffer.alloc(rows * 200, "x");
  return encodeOutcome({
    partial: {
      rowCount: rows,
      places: { day: zeros, time: zeros, stream: zeros, sequence: zeros, row: zeros },
      labelSet: new Uint32Array(rows),
      lines: { bytes, offsets: Uint32Array.from({ length: rows + 1 }, (_, i) => i * 200) },
      labels: [
        {
          labels: label,
          categories: { stream: label, structuredMetadata: noLabels, parsed: noLabels },
        },
      ],
      truncated: false,
    },
    stats: emptyReadStats(),
    streams: 1,
  });
}

async function serve() {
  const server = new GrpcServer({
    address: "127.0.0.1",
    port: 0,
    maxConnections: 0,
    maxReceiveBytes: 100 * MiB,
    maxSendBytes: 100 * MiB,
    maxConcurrentStreams: 0,
    gracefulShutdownMs: 0,
    ...bounds,
  });
  const outcome = logOutcome(40_000);
  serveIngester(server, {
    push: async () => ({ refusals: [] }),
    run: async (kind) => {
      if (kind === "scan") return outcome;
      const { user, system } = process.cpuUsage();
      return user + system;
    },
  });
  process.send(await server.start());
}

async function measure() {
  const child = fork(new URL(import.meta.url).pathname, ["server"]);
  const port = await new Promise((resolve) => child.once("message", resolve));
  const connection = new GrpcConnection({
    address: `127.0.0.1:${port}`,
    maxReceiveBytes: 100 * MiB,
    maxSendBytes: 100 * MiB,
    connectTimeoutMs: 5000,
    minReconnectMs: 1000,
    maxReconnectMs: 5000,
    ...bounds,
  });
  const ingester = remoteIngester(connection);
  const { signal } = new AbortController();
  const share = { tenant: "t", actors: [], cost: 0 };
  const log = { kind: "log", matchers: [{ name: "app", op: "=", value: "a" }], stages: [] };
  const plan = {
    kind: "log",
    log,
    fromNs: 0n,
    toNs: 9n,
    limit: 9,
    direction: "forward",
    intervalNs: 0n,
    nowNs: 9n,
  };
  const task = { plan, sources: [] };
  const cpu = async () => {
    const { user, system } = process.cpuUsage();
    return (user + system + (await ingester.run("measure", task, { signal, share }))) / 1e6;
  };
  const table = [];
  const run = async (what, count, concurrency, bytes, one) => {
    for (let i = 0; i < count / 5; i++) await one();
    const before = await cpu();
    const start = performance.now();
    let left = count;
    const work = async () => {
      while (left-- > 0) await one();
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    const seconds = (performance.now() - start) / 1000;
    const used = (await cpu()) - before;
    table.push({
      what,
      "calls/s": Math.round(count / seconds),
      "calls/CPU-s": Math.round(count / used),
      "raw MB/CPU-s": Math.round((count * bytes) / used / 1e6),
    });
  };
  const batchOf = (rows) =>
    makeBatch(
      Array.from({ length: 10 }, (_, s) => ({
        labels: { app: `app${s}`, env: "prod" },
        rows: Array.from({ length: rows / 10 }, (_, i) => ({
          ns: BigInt(i),
          line: "x".repeat(200),
        })),
      })),
    );
  const small = { tenant: "t", batch: batchOf(50) };
  const large = { tenant: "t", batch: batchOf(5000) };
  await run("push of 10 KB, 32 at a time", 20_000, 32, 10_000, () =>
    ingester.push(small, { signal }),
  );
  await run("push of 1 MB, 4 at a time", 300, 4, 1_000_000, () => ingester.push(large, { signal }));
  await run("scan outcome of 8 MB, decoded", 100, 2, 8_000_000, async () =>
    decodeOutcome(await ingester.run("scan", task, { signal, share })),
  );
  console.table(table);
  connection.close();
  child.kill();
}
