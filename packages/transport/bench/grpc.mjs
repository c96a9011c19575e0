// Calls between two processes: small ones, and MB/s of large requests and answers. Prints one table.
import { fork } from "node:child_process";
import { GrpcConnection, GrpcServer } from "../dist/grpc.js";

const MiB = 1024 * 1024;
if (process.argv[2] === "server") await serve();
else await measure();

async function serve() {
  const server = new GrpcServer({
    address: "127.0.0.1",
    port: 0,
    maxConnections: 0,
    maxReceiveBytes: 100 * MiB,
    maxSendBytes: 100 * MiB,
    maxConcurrentStreams: 0,
    keepaliveMs: 60_000,
    keepaliveTimeoutMs: 20_000,
    gracefulShutdownMs: 0,
  });
  const large = Buffer.alloc(16 * MiB, "x");
  server.add({
    name: "test.Bench",
    methods: {
      Echo: async (request) => [request],
      Take: async () => [],
      Give: async () => [large],
      Cpu: async () => [Buffer.from(String(process.cpuUsage().user + process.cpuUsage().system))],
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
    keepaliveMs: 60_000,
    keepaliveTimeoutMs: 20_000,
    windowBytes: 4 * MiB,
  });
  const { signal } = new AbortController();
  const call = (name, bytes) => connection.call(`/test.Bench/${name}`, [bytes], { signal });
  const cpuOf = async () => {
    const { user, system } = process.cpuUsage();
    return (user + system + Number(Buffer.from(await call("Cpu", Buffer.alloc(0))))) / 1e6;
  };
  const rows = [];
  const run = async (what, count, concurrency, bytes, one) => {
    for (let i = 0; i < concurrency; i++) await one();
    const cpu = await cpuOf();
    const start = performance.now();
    let left = count;
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        while (left-- > 0) await one();
      }),
    );
    const seconds = (performance.now() - start) / 1000;
    const used = (await cpuOf()) - cpu;
    rows.push({
      what,
      "calls/s": Math.round(count / seconds),
      "MB/s": Math.round((count * bytes) / seconds / 1e6),
      "calls/CPU-s": Math.round(count / used),
      "MB/CPU-s": Math.round((count * bytes) / used / 1e6),
    });
  };
  const small = Buffer.alloc(100);
  const push = Buffer.alloc(10_000);
  const batch = Buffer.alloc(MiB);
  const huge = Buffer.alloc(16 * MiB);
  if (process.argv[2] !== "large") {
    await run("echo 100 B, one at a time", 3000, 1, 100, () => call("Echo", small));
    await run("echo 100 B, 32 at a time", 20_000, 32, 100, () => call("Echo", small));
    await run("take 10 KB, 32 at a time", 10_000, 32, 10_000, () => call("Take", push));
  }
  await run("take 1 MiB, 4 at a time", 500, 4, MiB, () => call("Take", batch));
  await run("take 16 MiB, 2 at a time", 40, 2, 16 * MiB, () => call("Take", huge));
  await run("give 16 MiB, 2 at a time", 40, 2, 16 * MiB, () => call("Give", small));
  console.table(rows);
  connection.close();
  child.kill();
}
