// What it takes to hand pushes to the ingesters of a ring: CPU of the replicator and of encoding, and of decoding at all the
// ingesters together, without sockets. Bodies as an agent sends them, and rows without a body. Prints one table.

import { decodePush } from "@skald/contracts/codec";
import { parseStreamText } from "@skald/model";
import { assembleBatch, decodeBody, PushMemoryPool } from "@skald/push";
import { RingView } from "@skald/ring";
import { remoteIngester } from "@skald/rpc";
import { Metrics } from "@skald/runtime/metrics";
import { makeLogs } from "../../../bench/compare/logs.mjs";
import { createDistributorMetrics, Replicator } from "../dist/index.js";

const gigabyte = 1e9;
const tokensOfOne = 128;
const signal = new AbortController().signal;
const rounds = 4;

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

function batchOf(body, hasBody) {
  const source = { format: "protobuf", encoding: "identity", body };
  const raw = decodeBody(source);
  const text = new TextDecoder();
  const streams = Array.from({ length: raw.streamCount }, (_, ordinal) => {
    const start = raw.streamLabelStart[ordinal];
    const own = text.decode(raw.bytes.subarray(start, start + raw.streamLabelLength[ordinal]));
    const labels = parseStreamText(own.replaceAll(", ", ","));
    return { ordinal, labels, text: own.replaceAll(", ", ",") };
  });
  return assembleBatch(raw, {
    streams,
    dropped: new Uint32Array(0),
    levels: new Uint8Array(raw.rowCount),
    ...(hasBody ? { source } : {}),
  });
}

const bodies = [];
await makeLogs({
  megabytes: 60,
  seed: 1,
  endNs: 1_700_000_000_000_000_000n,
  take: ({ body }) => void bodies.push(body),
});

const cpuSeconds = (before) => {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
};

/** CPU of sending all batches and of decoding what was sent, s, and the bytes sent. */
async function round(members, batches) {
  const messages = [];
  const connection = {
    address: "",
    call: async (_, message) => {
      messages.push(message);
      return { refusals: [] };
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
  const pool = new PushMemoryPool();
  const found = { sending: 0, decoding: 0, sent: 0 };
  for (const batch of batches) {
    let held;
    // Each push is a batch of its own.
    const own = { tenant: "t", batch: { ...batch } };
    const before = process.cpuUsage();
    await replicator.push(own, { signal, hold: (until) => (held = until) });
    await held;
    found.sending += cpuSeconds(before);
    const sent = process.cpuUsage();
    for (const message of messages) {
      found.sent += message.length;
      const memory = pool.take();
      decodePush(message, (length) => memory.take(length));
      pool.give(memory);
    }
    messages.length = 0;
    found.decoding += cpuSeconds(sent);
  }
  return found;
}

console.log("CPU s and GB sent for a GB of lines, three copies");
console.log("rows    ingesters  sending  decoding  sent");
for (const hasBody of [true, false]) {
  const batches = bodies.map((body) => batchOf(body, hasBody));
  const gigabytes = batches.reduce((sum, { lineBytes }) => sum + lineBytes, 0) / gigabyte;
  for (const members of [3, 4, 6, 12]) {
    const all = [];
    for (let i = 0; i < rounds; i++) all.push(await round(members, batches));
    const least = (of) => (Math.min(...all.map(of)) / gigabytes).toFixed(2);
    console.log(
      [
        (hasBody ? "body" : "columns").padEnd(9),
        String(members).padStart(8),
        least((one) => one.sending).padStart(8),
        least((one) => one.decoding).padStart(9),
        least((one) => one.sent / gigabyte).padStart(5),
      ].join(" "),
    );
  }
}
