// A bucket for whole-process benches: the S3 server of the tests in a process of its own.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { S3Server } from "../../packages/testkit/dist/index.js";

if (process.argv[2] === "serve") await serve();

/** Starts a bucket in memory; `flags` make the program use it. */
export async function openBucket() {
  const child = fork(fileURLToPath(import.meta.url), ["serve"]);
  const ask = (question) =>
    new Promise((resolve) => {
      child.once("message", resolve);
      child.send(question);
    });
  const { host, bucket, key } = await ask({});
  return {
    host,
    bucket,
    key,
    secret: "secret",
    flags: [`-s3.url=s3://${key}:secret@${host}/${bucket}`, "-s3.force-path-style", "-s3.insecure"],
    /** Every answer takes at least this long, ms. */
    delay: (delayMs) => ask({ delayMs }),
    /** Keys of all objects. */
    keys: async () => (await ask({})).keys,
    /** Reads and bytes of their answers so far. */
    reads: async () => (await ask({})).reads,
    close: () => child.kill("SIGKILL"),
  };
}

async function serve() {
  const server = new S3Server();
  const host = new URL(await server.open()).host;
  const reads = { count: 0, bytes: 0 };
  process.on("message", ({ delayMs }) => {
    if (delayMs !== undefined) server.delayMs = delayMs;
    for (const { method, key, headers } of server.seen.splice(0)) {
      if (method !== "GET" || key === "") continue;
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
      const size = server.object(key)?.body.byteLength ?? 0;
      reads.count++;
      reads.bytes += to === undefined ? size : Math.min(Number(to) + 1, size) - Number(from);
    }
    process.send({
      host,
      bucket: server.bucket,
      key: server.accessKeyId,
      keys: server.keys,
      reads,
    });
  });
}
