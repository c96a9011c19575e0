// What each way in costs: `node bench/doors.mjs [--bodies 100] [--only elastic]`. Starts the built program for each protocol, sends the same
// records by it, flushes, and prints bodies and records per second of the server's processor time, which a busy machine
// does not change much. A body is 5000 records, not packed; each way has the labels `app` and `host`, and all else as metadata or in the
// line. bench/README.md has figures.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makePushBody } from "../packages/testkit/dist/index.js";
import { builtRuntime } from "../scripts/runtime.mjs";

const { values: args } = parseArgs({
  options: {
    bodies: { type: "string", default: "100" },
    port: { type: "string", default: "3179" },
    only: { type: "string", default: "" },
  },
});
const records = 5000;
const warmBodies = 20;
const apps = ["shop", "cart", "auth", "mail"];
const ticksPerSecond = 100;
const root = new URL("..", import.meta.url).pathname;
const url = `http://127.0.0.1:${args.port}`;
const syslogPort = Number(args.port) + 1;
let nextMs = Date.now() - 6 * 3_600_000;

/** Records with times that no other record has. */
function recordsOf() {
  return Array.from({ length: records }, (_, i) => {
    const ms = nextMs++;
    const message = `request ${ms} served path=/api/v1/items/${i % 997} status=${i % 50 ? 200 : 500} duration=${(i % 300) / 10}ms`;
    return {
      ms,
      app: apps[i % 4],
      host: `web-${i % 8}`,
      level: i % 50 ? "info" : "error",
      trace: (ms * 7919).toString(16),
      message,
    };
  });
}

const json = { "content-type": "application/json" };
const lines = (objects) => Buffer.from(`${objects.map((one) => JSON.stringify(one)).join("\n")}\n`);
const objectOf = ({ ms, ...rest }) => ({ "@timestamp": new Date(ms).toISOString(), ...rest });
const bulkOf = (all) =>
  lines(all.flatMap((one) => [{ create: { _index: "logs" } }, objectOf(one)]));
const asMessage = "&message_field=message";

function streamsOf(all) {
  const streams = new Map();
  for (const { ms, app, host, level, trace, message } of all) {
    const key = `{app="${app}", host="${host}"}`;
    const stream = streams.get(key) ?? { labels: key, object: { app, host }, rows: [] };
    streams.set(key, stream);
    stream.rows.push({
      ns: BigInt(ms) * 1_000_000n,
      line: message,
      metadata: [
        ["level", level],
        ["trace", trace],
      ],
    });
  }
  return [...streams.values()];
}

const ways = {
  "push, protobuf": {
    path: "/loki/api/v1/push",
    headers: { "content-type": "application/x-protobuf" },
    encode: (all) => makePushBody(streamsOf(all)),
  },
  "push, JSON": {
    path: "/loki/api/v1/push",
    headers: json,
    encode: (all) => {
      const streams = streamsOf(all).map(({ object, rows }) => ({
        stream: object,
        values: rows.map(({ ns, line, metadata }) => [`${ns}`, line, Object.fromEntries(metadata)]),
      }));
      return Buffer.from(JSON.stringify({ streams }));
    },
  },
  "JSON lines, whole": {
    path: "/insert/jsonline?labels=app,host",
    encode: (all) => lines(all.map(objectOf)),
  },
  "JSON lines, message": {
    path: `/insert/jsonline?labels=app,host${asMessage}`,
    encode: (all) => lines(all.map(objectOf)),
  },
  "elastic bulk, whole": { path: "/elasticsearch/_bulk?labels=app,host", encode: bulkOf },
  "elastic bulk, message": {
    path: `/elasticsearch/_bulk?labels=app,host${asMessage}`,
    encode: bulkOf,
  },
  "Splunk events": {
    path: "/services/collector?labels=app,host",
    encode: (all) =>
      lines(
        all.map(({ ms, host, message, ...fields }) => ({
          time: ms / 1000,
          host,
          event: message,
          fields,
        })),
      ),
  },
  Datadog: {
    path: "/api/v2/logs?labels=service,hostname",
    headers: json,
    encode: (all) =>
      Buffer.from(
        JSON.stringify(
          all.map(({ ms, app, host, level, trace, message }) => ({
            ...{ message, status: level, timestamp: ms, hostname: host, service: app },
            ddtags: `trace:${trace}`,
          })),
        ),
      ),
  },
  journald: {
    path: "/insert/journald/upload?labels=APP,_HOSTNAME",
    encode: (all) =>
      Buffer.from(
        all
          .map(
            ({ ms, app, host, level, trace, message }) =>
              `__REALTIME_TIMESTAMP=${ms}000\n_HOSTNAME=${host}\nAPP=${app}\nPRIORITY=${level === "info" ? 6 : 3}\nTRACE=${trace}\nMESSAGE=${message}\n\n`,
          )
          .join(""),
      ),
  },
  "syslog, RFC 5424 over TCP": {
    encode: (all) =>
      Buffer.from(
        all
          .map(
            ({ ms, app, host, level, trace, message }) =>
              `<${level === "info" ? 14 : 11}>1 ${new Date(ms).toISOString()} ${host} ${app} - - [m trace="${trace}"] ${message}\n`,
          )
          .join(""),
      ),
  },
};

console.log("| way | bytes a record | MB of bodies per CPU-s | records per CPU-s |");
console.log("| --- | --- | --- | --- |");
for (const name of Object.keys(ways).filter((one) => one.includes(args.only))) {
  const { bytes, cpu } = await measure(ways[name]);
  const sent = records * Number(args.bodies);
  const rate = (amount) => Math.round(amount / cpu);
  console.log(
    `| ${name} | ${Math.round(bytes / sent)} | ${rate(bytes / 1e6)} | ${rate(sent / 1000)} k |`,
  );
}

/** What a server of its own needs for the bodies of one way. */
async function measure(way) {
  const folder = mkdtempSync(join(tmpdir(), "skald-doors-"));
  const config = join(folder, "skald.yaml");
  const listener = { address: `127.0.0.1:${syslogPort}`, label_fields: ["app", "host"] };
  const syslog = `\nsyslog: {listeners: ${JSON.stringify([listener])}}\n`;
  writeFileSync(config, readFileSync(join(root, "bench/skald.yaml"), "utf8") + syslog);
  const server = spawn(
    builtRuntime() ?? process.execPath,
    [
      "packages/skald/bundle/main.js",
      `-config.file=${config}`,
      `-common.path-prefix=${folder}`,
      `-common.storage.filesystem.chunk-directory=${join(folder, "chunks")}`,
      `-server.http-listen-port=${args.port}`,
      "-server.grpc-listen-port=0",
    ],
    { cwd: root, stdio: "ignore" },
  );
  const ended = new Promise((resolve) => server.once("exit", resolve));
  try {
    await ready();
    await send(way, warmBodies);
    await fetch(`${url}/flush`, { method: "POST" });
    const before = cpuSeconds(server.pid);
    const bytes = await send(way, Number(args.bodies));
    await fetch(`${url}/flush`, { method: "POST" });
    return { bytes, cpu: cpuSeconds(server.pid) - before };
  } finally {
    server.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends bodies one after the other, syslog over a connection; returns their bytes. */
async function send({ path, headers = {}, encode }, bodies) {
  let bytes = 0;
  const socket = path === undefined ? connect(syslogPort, "127.0.0.1") : undefined;
  const wanted = (await linesStored()) + bodies * records;
  for (let i = 0; i < bodies; i++) {
    const body = encode(recordsOf());
    bytes += body.length;
    if (socket !== undefined) {
      await new Promise((resolve) => socket.write(body, resolve));
      continue;
    }
    const response = await fetch(url + path, { method: "POST", headers, body });
    const text = await response.text();
    if (!response.ok || text.includes('"errors":true'))
      throw new Error(`${path}: ${response.status} ${text}`);
  }
  socket?.end();
  while (socket !== undefined && (await linesStored()) < wanted)
    await new Promise((resolve) => setTimeout(resolve, 100));
  return bytes;
}

async function linesStored() {
  const text = await (await fetch(`${url}/metrics`)).text();
  const counts = text.matchAll(/^loki_distributor_lines_received_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Processor time of all threads of the server. */
function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

async function ready() {
  for (let tries = 0; tries < 600; tries++) {
    const answer = await fetch(`${url}/ready`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the server does not start: run `npm run build`");
}
