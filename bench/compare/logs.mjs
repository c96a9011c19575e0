// The logs that compare.mjs pushes: six applications in some 180 streams over an hour, the same for the same seed. What a query
// must answer is counted while they are made.
import { compressSync } from "snappy";
import { Writer } from "./protobuf.mjs";

/** Texts that only planted lines have. */
export const needles = {
  one: "order-7f3c9e1d-needle",
  few: "feature-flag-rollback",
  trace: "4bf92f3577b34da6a3ce929d0e0e4736",
};

const hourNs = 3_600_000_000_000n;
/** Lines of a stream that are pushed together, and the time between two of them. */
const rowsOfRun = 64;
const rowNs = 40_000;
const runNs = BigInt(rowsOfRun * rowNs);
const bodyBytes = 1024 * 1024;
const applications = [
  { app: "checkout", pods: 40, weight: 5, line: checkoutLine, metadata: true },
  { app: "gateway", pods: 30, weight: 4, line: gatewayLine },
  { app: "edge", pods: 20, weight: 4, line: edgeLine },
  { app: "auth", pods: 30, weight: 3, line: authLine },
  { app: "ledger", pods: 40, weight: 2, line: ledgerLine },
  { app: "kubelet", pods: 20, weight: 2, line: kubeletLine },
];

/**
 * Makes `megabytes` MB of lines that end at `endNs`, calls `take` with each push body (protobuf in snappy, about 1 MiB before), and gives
 * what was counted.
 */
export async function makeLogs({ megabytes, seed, endNs, take }) {
  const random = mulberry(seed);
  const startNs = endNs - hourNs;
  const streams = applications.flatMap((application) =>
    Array.from({ length: application.pods }, (_, i) => ({
      ...application,
      random,
      labels: `{app="${application.app}", cluster="${i % 2 === 0 ? "eu" : "us"}", namespace="${namespaceOf(i)}", pod="${application.app}-${i}"}`,
      pod: `${application.app}-${i}`,
    })),
  );
  const wheel = streams.flatMap((stream) => Array(stream.weight).fill(stream));
  const counts = {
    lines: 0,
    bytes: 0,
    needleOne: 0,
    needleFew: 0,
    traced: 0,
    byApp: {},
    failed: 0,
    timeouts: 0,
    slow: 0,
    edge: {},
  };
  const total = megabytes * 1_000_000;
  let next = 0;
  while (counts.bytes < total) {
    const body = new Writer();
    let raw = 0;
    while (raw < bodyBytes && counts.bytes < total) {
      const stream = wheel[next++ % wheel.length];
      const entries = new Writer();
      entries.text(1, stream.labels);
      for (let row = 0; row < rowsOfRun; row++) {
        const part = Math.min(1, counts.bytes / total);
        const atNs =
          startNs + BigInt(Math.floor(part * Number(hourNs - runNs))) + BigInt((row + 1) * rowNs);
        const { line, traceId } = planted(stream, counts, random);
        entries.message(2, entryOf(atNs, line, traceId));
        raw += line.length;
      }
      body.message(1, entries);
    }
    await take({ body: compressSync(body.bytes()), raw });
  }
  return { ...counts, streams: streams.length, startNs, endNs };
}

/** The next line of a stream, counted; some hundred are planted. */
function planted(stream, counts, random) {
  let line = stream.line(stream, counts, random);
  let traceId;
  if (counts.lines === 123_456) line += ` ${needles.one}`;
  if (counts.lines % 200_003 === 7) {
    line += ` ${needles.few}`;
    counts.needleFew++;
  }
  if (stream.metadata) {
    traceId = hex(random, 32);
    if (counts.lines % 50_021 < 4) {
      traceId = needles.trace;
      counts.traced++;
    }
  }
  if (line.includes(needles.one)) counts.needleOne++;
  counts.lines++;
  counts.bytes += line.length;
  counts.byApp[stream.app] = (counts.byApp[stream.app] ?? 0) + 1;
  return { line, traceId };
}

function entryOf(atNs, line, traceId) {
  const entry = new Writer();
  const time = new Writer();
  time.number(1, atNs / 1_000_000_000n);
  time.number(2, atNs % 1_000_000_000n);
  entry.message(1, time);
  entry.text(2, line);
  if (traceId !== undefined) {
    const pair = new Writer();
    pair.text(1, "trace_id");
    pair.text(2, traceId);
    entry.message(3, pair);
  }
  return entry;
}

function checkoutLine({ pod }, counts, random) {
  const status = oneOf(random, [200, 200, 200, 201, 204, 302, 400, 404, 500, 503]);
  if (status >= 500) counts.failed++;
  const level = status >= 500 ? "error" : status >= 400 ? "warn" : "info";
  return JSON.stringify({
    level,
    msg: oneOf(random, [
      "order placed",
      "payment authorised",
      "cart updated",
      "stock reserved",
      "coupon rejected",
    ]),
    order: `order-${hex(random, 8)}`,
    user: {
      id: Math.floor(random() * 50_000),
      country: oneOf(random, ["de", "fr", "us", "jp", "br"]),
    },
    status,
    duration_ms: Math.floor(random() ** 4 * 4000),
    caller: `${pod}/handlers/checkout.go:${Math.floor(random() * 900)}`,
  });
}

function gatewayLine(_, counts, random) {
  const took = Math.floor(random() ** 3 * 3000);
  if (took > 2500) counts.slow++;
  const level = took > 2000 ? "warn" : "info";
  return `level=${level} component=gateway route=/api/v2/${oneOf(random, ["carts", "orders", "users", "search"])} method=${oneOf(random, ["GET", "GET", "POST", "PUT"])} took=${took}ms upstream=10.${Math.floor(random() * 255)}.${Math.floor(random() * 255)}.7:8443 request_id=${hex(random, 24)}`;
}

function edgeLine(_, counts, random) {
  const status = oneOf(random, [200, 200, 200, 200, 301, 304, 404, 429, 502]);
  counts.edge[status] = (counts.edge[status] ?? 0) + 1;
  const path = `/${oneOf(random, ["assets", "img", "api", "docs"])}/${hex(random, 6)}`;
  return `203.0.113.${Math.floor(random() * 255)} - - [21/Nov/2026:10:11:12 +0000] "GET ${path} HTTP/1.1" ${status} ${Math.floor(random() * 90_000)} "https://shop.example/" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36" ${(random() * 2).toFixed(3)}`;
}

function authLine(_, counts, random) {
  const reason = oneOf(random, [
    "ok",
    "ok",
    "ok",
    "bad password",
    "Timeout from directory",
    "token expired",
  ]);
  if (reason.startsWith("Timeout")) counts.timeouts++;
  return `ts=2026-11-21T10:11:12Z level=${reason === "ok" ? "info" : "error"} msg="login" user=u${Math.floor(random() * 50_000)} reason="${reason}" ip=198.51.100.${Math.floor(random() * 255)} session=${hex(random, 16)}`;
}

function ledgerLine(_, __, random) {
  if (random() > 0.05)
    return `2026-11-21 10:11:12.345 INFO  [worker-${Math.floor(random() * 32)}] com.example.ledger.Journal - posted entry ${hex(random, 12)} amount=${(random() * 900).toFixed(2)} EUR`;
  const frames = Array.from(
    { length: 6 + Math.floor(random() * 10) },
    (_, i) =>
      `\tat com.example.ledger.${oneOf(random, ["Journal", "Store", "Lock"])}.step${i}(Source.java:${Math.floor(random() * 400)})`,
  );
  return `2026-11-21 10:11:12.345 ERROR [worker-${Math.floor(random() * 32)}] com.example.ledger.Journal - java.lang.IllegalStateException: lock lost\n${frames.join("\n")}`;
}

function kubeletLine(_, __, random) {
  return `I1121 10:11:12.345678 ${1000 + Math.floor(random() * 64)} kuberuntime_manager.go:${Math.floor(random() * 900)}] "Container probe" pod="shop/${hex(random, 10)}" probe=${oneOf(random, ["liveness", "readiness"])} result=${oneOf(random, ["success", "success", "failure"])}`;
}

function namespaceOf(i) {
  return ["shop", "payments", "platform"][i % 3];
}

function oneOf(random, list) {
  return list[Math.floor(random() * list.length)];
}

function hex(random, digits) {
  let text = "";
  while (text.length < digits)
    text += Math.floor(random() * 0x10000000)
      .toString(16)
      .padStart(7, "0");
  return text.slice(0, digits);
}

/** Mulberry32: 32 bits of state, good enough for text. */
function mulberry(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
