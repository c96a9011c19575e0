// The codec of contracts and that of @grpc/proto-loader: us of CPU for a message, encoded and decoded. Prints rows of a table.
import { loadSync } from "@grpc/proto-loader";
import { decode, encode } from "@skald/contracts/codec";

const d = loadSync(["services.proto"], {
  includeDirs: [new URL("../../../proto", import.meta.url).pathname],
  keepCase: false,
});
const svc = d["skald.v1.Ingester"];
const matcher = (i) => ({ name: `label${i}`, op: "=", value: "some value" });
const range = { fromNs: 1700000000000000000n, toNs: 1700003600000000000n };
const seg = (i) => ({
  ref: {
    kind: "segment",
    id: `01HF${i}ABCDEFGHIJKLMNOP`,
    tenant: "shop",
    minNs: range.fromNs,
    maxNs: range.toNs,
    location: { kind: "object", key: `shop/2026-11-23/${i}.parquet` },
    sizeBytes: 123456789,
  },
  sequence: i,
});
const scan = {
  task: {
    plan: {
      kind: "log",
      log: {
        kind: "log",
        matchers: [matcher(1), matcher(2)],
        stages: [
          { kind: "line_filter", op: "|=", alternatives: [{ kind: "text", value: "error" }] },
        ],
      },
      ...range,
      limit: 1000,
      direction: "backward",
      intervalNs: 0n,
      nowNs: range.toNs,
    },
    sources: Array.from({ length: 20 }, (_, i) => seg(i)),
  },
  share: { tenant: "shop", actors: [], cost: 1e9 },
};
const n = 5000,
  rows = 200;
const sets = Array.from({ length: 20 }, (_, i) => {
  const l = { names: ["app", "pod"], values: ["a", `p${i}`] },
    no = { names: [], values: [] };
  return { labels: l, categories: { stream: l, structuredMetadata: no, parsed: no } };
});
const f = (len) => Float64Array.from({ length: len }, (_, i) => i * 1e6);
const stats = Object.fromEntries(
  [
    "sources",
    "sourcesScanned",
    "batches",
    "linesSent",
    "headBytes",
    "headLines",
    "decompressedBytes",
    "decompressedLines",
    "compressedBytes",
    "filteredBlocks",
    "refusedBlocks",
    "duplicates",
    "postFilterLines",
    "downloadNs",
    "fetchedRanges",
    "fetchedPages",
    "fetchedBytes",
    "cachedPages",
    "cachedBytes",
  ].map((k, i) => [k, i * 1000]),
);
const outcome = {
  partial: {
    rowCount: n,
    places: { day: f(n), time: f(n), stream: f(n), sequence: f(n), row: f(n) },
    labelSet: new Uint32Array(n),
    lines: {
      bytes: Buffer.alloc(n * rows, "x"),
      offsets: Uint32Array.from({ length: n + 1 }, (_, i) => i * rows),
    },
    labels: sets,
    truncated: false,
  },
  stats,
  streams: 20,
};
const mask = {
  blocks: Uint32Array.from({ length: 50 }, (_, i) => i),
  rows: Array.from({ length: 50 }, () => Uint32Array.from({ length: 2000 }, (_, i) => i)),
};
const time = (count, run) => {
  for (let i = 0; i < count / 5; i++) run();
  const s = process.cpuUsage();
  for (let i = 0; i < count; i++) run();
  const u = process.cpuUsage(s);
  return ((u.user + u.system) / count).toFixed(0);
};
for (const [what, message, value, ser, des, count] of [
  [
    "scan request of 20 segments",
    "ScanRequest",
    scan,
    svc.Scan.requestSerialize,
    svc.Scan.requestDeserialize,
    5000,
  ],
  ["outcome of 5000 lines", "Outcome", outcome, null, null, 100],
  ["mask of 100,000 rows", "RowMask", mask, null, null, 100],
]) {
  const bytes = Buffer.from(encode(message, value));
  // The library's way: the part message with `whole`.
  const part = { Outcome: svc.Scan, RowMask: svc.Duplicates }[message];
  const libDecode =
    des ??
    ((b) =>
      part.responseDeserialize(Buffer.concat([Buffer.from([0x0a]), varint(b.length), b])).whole);
  const plain = libDecode(bytes);
  const libEncode = ser ?? ((v) => part.responseSerialize({ whole: v }));
  console.log(
    `| ${what}, ${bytes.length} bytes | ${time(count, () => libEncode(plain))} | ${time(count, () => libDecode(bytes))} | ${time(count, () => encode(message, value, bytes.length))} | ${time(count, () => decode(message, bytes))} |`,
  );
}
function varint(v) {
  const o = [];
  for (; v > 127; v >>>= 7) o.push((v & 127) | 128);
  o.push(v);
  return Buffer.from(o);
}
