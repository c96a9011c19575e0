// CPU of the process that reads and writes a bucket, by HTTP and HTTPS: what the main thread pays for each MB.
//
//     node packages/storage/bench/s3.mjs
import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { S3Store } from "@skald/storage";
import { S3Server, testCertificate } from "@skald/testkit";

const MiB = 1024 * 1024;
const sizeBytes = 64 * MiB;
const pieceBytes = 4 * MiB;
const rounds = 8;

if (process.argv[2] === "server") {
  const secure = process.argv[3] === "https";
  const server = new S3Server(secure ? { tls: testCertificate } : {});
  process.send(await server.open());
} else {
  for (const scheme of ["http", "https"]) await measure(scheme);
}

async function measure(scheme) {
  const child = fork(fileURLToPath(import.meta.url), ["server", scheme]);
  const directory = mkdtempSync(join(tmpdir(), "skald-s3-bench-"));
  const { signal } = new AbortController();
  try {
    const endpoint = await new Promise((resolve) => child.once("message", resolve));
    const store = new S3Store({
      ...{
        bucket: "logs",
        region: "us-east-1",
        endpoint,
        pathStyle: true,
        insecureSkipVerify: true,
      },
      credentials: { accessKeyId: "test-key", secretAccessKey: "s" },
    });
    const path = join(directory, "file");
    writeFileSync(path, Buffer.alloc(sizeBytes, "some bytes of a file "));
    const started = performance.now();
    await store.put("small", Buffer.from("x"), { signal });
    process.stdout.write(`${scheme}: first call ${Math.round(performance.now() - started)} ms\n`);
    await timed(`${scheme}: put of ${sizeBytes / MiB} MiB in parts`, sizeBytes, () =>
      store.putFile("file", path, { signal }),
    );
    for (let round = 0; round < rounds; round++) {
      const last = round === rounds - 1 ? `${scheme}: ranges of 4 MiB, 16 at a time` : undefined;
      await timed(last, sizeBytes, () =>
        Promise.all(
          Array.from({ length: sizeBytes / pieceBytes }, (_, i) =>
            store.getRange("file", { offset: i * pieceBytes, length: pieceBytes }, { signal }),
          ),
        ),
      );
    }
    await timed(`${scheme}: 200 ranges of 64 KiB, one after the other`, 200 * 65536, async () => {
      for (let i = 0; i < 200; i++)
        await store.getRange("file", { offset: i * 65536, length: 65536 }, { signal });
    });
    await store.close();
  } finally {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  }
}

async function timed(name, bytes, work) {
  const cpu = process.cpuUsage();
  const started = performance.now();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  if (name === undefined) return;
  const ms = performance.now() - started;
  const cpuMs = (user + system) / 1000;
  const rate = (bytes / 1e6 / (ms / 1000)).toFixed(0);
  const cost = (cpuMs / (bytes / 1e6)).toFixed(2);
  process.stdout.write(`${name}: ${rate} MB/s, ${cost} ms of CPU per MB\n`);
}
