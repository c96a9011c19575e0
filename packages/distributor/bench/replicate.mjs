// What it takes to hand pushes to the ingesters of a ring: CPU of the replicator and of encoding, without sockets. Prints one table.

import { RingView } from "@skald/ring";
import { remoteIngester } from "@skald/rpc";
import { Metrics } from "@skald/runtime/metrics";
import { makeBatch } from "@skald/testkit";
import { createDistributorMetrics, Replicator } from "../dist/index.js";

const gigabyte = 1e9;
const tokensOfOne = 128;
const signal = new AbortController().signal;

/** Members with tokens that are spread evenly. */
function ringOf(count) {
  const all = Array.from({ length: count * tokensOfOne }, (_, i) =>
    Math.floor((i * 2 ** 32) / (count * tokensOfOne)),
  );
  const members = Array.from({ length: count }, (_, member) => ({
    ...{ id: `i${member}`, address: `i${member}:9095`, zone: "", state: "ACTIVE" },
    ...{ beat: 1, heartbeatMs: 0, registeredMs: 1, isHealthy: true },
    tokens: Uint32Array.from(all.filter((_, i) => (i * 7) % count === member)),
  }));
  return { replicas: 3, view: new RingView(members, { replicas: 3, isZoneAware: false }) };
}

function batchOf(streams, rows, line) {
  return makeBatch(
    Array.from({ length: streams }, (_, i) => ({
      labels: { app: "shop", pod: `pod-${i}`, namespace: "production" },
      rows: Array.from({ length: rows }, (_, row) => ({
        ns: BigInt(1_700_000_000_000 + row) * 1_000_000n,
        line: line.padEnd(100 + ((row * 37) % 100), "x"),
        metadata: {},
      })),
    })),
  );
}

console.log("ingesters  push       pushes  CPU s / GB of lines");
for (const members of [3, 6])
  for (const [streams, rows] of [
    [10, 70],
    [100, 70],
    [100, 700],
  ]) {
    const batch = batchOf(streams, rows, "level=info msg=request");
    let _sent = 0;
    const connection = {
      address: "",
      call: async (_, parts) => {
        for (const { length } of parts) _sent += length;
        return new Uint8Array(0);
      },
    };
    const ingester = remoteIngester(connection);
    const replicator = new Replicator({
      ring: ringOf(members),
      ingesterOf: () => ingester,
      timeoutMs: 10_000,
      maxBytesBehind: gigabyte,
      metrics: createDistributorMetrics(new Metrics({ namespace: "loki" })),
    });
    const push = async () => {
      let held;
      // Each push is a batch of its own.
      const own = { tenant: "t", batch: { ...batch } };
      await replicator.push(own, { signal, hold: (until) => (held = until) });
      await held;
    };
    for (let i = 0; i < 20; i++) await push();
    const pushes = Math.max(10, Math.round(gigabyte / 4 / batch.lineBytes));
    const before = process.cpuUsage();
    for (let i = 0; i < pushes; i++) await push();
    const { user, system } = process.cpuUsage(before);
    const seconds = (user + system) / 1e6 / ((pushes * batch.lineBytes) / gigabyte);
    const size = `${(batch.lineBytes / 1e6).toFixed(1)} MB`.padEnd(9);
    console.log(
      `${String(members).padStart(9)}  ${size}  ${String(pushes).padStart(6)}  ${seconds.toFixed(2)}`,
    );
  }
