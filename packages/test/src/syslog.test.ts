import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { TestAuthority } from "@skald/testkit";
import { needs } from "@skald/testkit/needs";
import { queryNumber, queryStreams, readMetric } from "./testing/client.js";
import { docsCode, docsPage } from "./testing/docs-page.js";
import {
  binSkald,
  makeFolder,
  peakMemoryBytes,
  removeFolders,
  runProgram,
  spawnServer,
  startServer,
  type TestServer,
  untilReady,
  waitFor,
} from "./testing/server.js";

const lineCount = 10_000;
const authority = new TestAuthority("syslog");
let server: TestServer;
let folder: string;
let lines: string[];
let ports: { tcp: number; udp: number; tls: number };

beforeAll(async () => {
  folder = makeFolder();
  const { cert, key } = authority.issue("server");
  for (const [name, text] of Object.entries({ cert, key, ca: authority.cert }))
    writeFileSync(join(folder, `${name}.pem`), text);
  server = await startServer(folder, [`-config.file=${writeConfig(folder)}`]);
  ports = portsOf(server);
  lines = Array.from(
    { length: lineCount },
    (_, i) => `request ${i} took ${i % 997} ms at http://shop.example/caf\u00e9?id=${i}`,
  );
  writeFileSync(join(folder, "lines.log"), `${lines.join("\n")}\n`);
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const schema =
  "schema_config: {configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}]}\n";

function writeConfig(into: string): string {
  const path = join(into, "skald.yaml");
  const listener = (protocol: string, rest: string) =>
    `    - {address: "127.0.0.1:0", protocol: ${protocol}, time_zone: UTC, ${rest}}\n`;
  writeFileSync(
    path,
    `auth_enabled: false
server: {log_format: json}
limits_config: {max_entries_limit_per_query: 20000, ingestion_rate_mb: 2, ingestion_burst_size_mb: 2}
${schema}syslog:
  listeners:
${listener("tcp", "labels: {via: tcp}")}${listener("udp", "labels: {via: udp}")}${listener(
  "tls",
  `labels: {via: tls}, tls_config: {cert_file: ${into}/cert.pem, key_file: ${into}/key.pem}`,
)}`,
  );
  return path;
}

function portsOf({ log }: Pick<TestServer, "log">): { tcp: number; udp: number; tls: number } {
  const port = (protocol: string) =>
    Number(
      new RegExp(`"listener":"${protocol}/[^"]*"[^\\n]*"syslogPort":(\\d+)`).exec(log())?.[1] ??
        new RegExp(`"syslogPort":(\\d+)[^\\n]*"listener":"${protocol}/`).exec(log())?.[1],
    );
  return { tcp: port("tcp"), udp: port("udp"), tls: port("tls") };
}

async function untilCounted(selector: string, count: number, url = server.url): Promise<void> {
  const query = `sum(count_over_time(${selector}[1h]))`;
  await waitFor(async () => (await queryNumber(url, query)) >= count);
  expect(await queryNumber(url, query)).toBe(count);
}

interface Row {
  readonly labels: Readonly<Record<string, string>>;
  readonly line: string;
}

/** Rows by their number, which is in each line. */
async function rowsOf(selector: string): Promise<Row[]> {
  const streams = await queryStreams(server.url, selector, { limit: "20000" });
  const rows = streams.flatMap(({ stream, values }) =>
    values.map(([, line]) => ({ labels: stream, line })),
  );
  const numberOf = ({ line }: Row) => Number(/request (\d+)/.exec(line)?.[1]);
  return rows.sort((a, b) => numberOf(a) - numberOf(b));
}

/** Checks that all lines are there, each once, with these labels and metadata. */
async function expectLines(selector: string, fields: object, of = lines): Promise<void> {
  await untilCounted(selector, of.length);
  const rows = await rowsOf(selector);
  expect(rows.map(({ line }) => line)).toEqual(of);
  for (const at of [0, 1 % of.length, of.length >> 1, of.length - 1])
    expect(rows[at]?.labels).toMatchObject(fields);
}

/** Runs an agent until `done`; its output is shown when it fails. */
async function withAgent(
  program: string,
  args: readonly string[],
  done: () => Promise<void>,
): Promise<void> {
  const agent = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [agent.stdout, agent.stderr])
    stream.on("data", (chunk: Buffer) => (output += chunk));
  const ended = once(agent, "exit");
  try {
    await Promise.race([
      done(),
      ended.then(([code]) => Promise.reject(new Error(`${program} ended with ${code}: ${output}`))),
    ]);
  } finally {
    agent.kill("SIGKILL");
    await ended;
  }
}

function rsyslogConfig(name: string, action: string): string[] {
  return rsyslogFile(
    name,
    `action(type="omfwd" target="127.0.0.1" action.resumeRetryCount="-1" ${action})\n`,
  );
}

function rsyslogFile(name: string, actions: string): string[] {
  const path = join(folder, `${name}.conf`);
  const work = join(folder, name);
  mkdirSync(work, { recursive: true });
  writeFileSync(
    path,
    `global(workDirectory="${work}" localHostname="box-1" defaultNetstreamDriverCAFile="${folder}/ca.pem")
module(load="imfile" mode="polling" pollingInterval="1")
input(type="imfile" file="${folder}/lines.log" tag="${name}:" facility="local3" severity="warning")
${actions}`,
  );
  return ["-n", "-f", path, "-i", join(work, "pid")];
}

const ofRsyslog = {
  host: "box-1",
  facility: "local3",
  severity: "warning",
  detected_level: "warn",
};

needs("rsyslogd")("rsyslog sends ten thousand lines over TCP, in its usual form", async () => {
  const action = `protocol="tcp" port="${ports.tcp}"`;
  await withAgent("rsyslogd", rsyslogConfig("rsyslog-lines", action), () =>
    expectLines('{via="tcp", app="rsyslog-lines"}', ofRsyslog),
  );
});

needs("rsyslogd")("rsyslog sends them counted, in the form of RFC 5424", async () => {
  const config = docsCode("syslog.md", "## Senders", {
    ...{ "skald.example": "127.0.0.1", "6514": String(ports.tcp) },
  });
  const plain = config.replace(/^ *StreamDriver.*\n/gm, "");
  await withAgent("rsyslogd", rsyslogFile("rsyslog-counted", plain), () =>
    expectLines('{via="tcp", app="rsyslog-counted"}', ofRsyslog),
  );
});

needs("rsyslogd")("rsyslog sends them over TLS", async () => {
  // Debian has it in one of two packages.
  const driver = ["ossl", "gtls"].find((name) =>
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"].some(
      (at) => existsSync(`${at}/rsyslog/lmnsd_${name}.so`),
    ),
  );
  if (driver === undefined) {
    if (process.env.CI) throw new Error("rsyslog-openssl is not installed");
    return;
  }
  const config = docsCode("syslog.md", "## Senders", {
    ...{ "skald.example": "127.0.0.1", "6514": String(ports.tls) },
    ...{ "/etc/ssl/skald-ca.pem": join(folder, "ca.pem"), '"ossl"': `"${driver}"` },
  });
  await withAgent("rsyslogd", rsyslogFile("rsyslog-tls", config), () =>
    expectLines('{via="tls", app="rsyslog-tls"}', ofRsyslog),
  );
});

needs("logger")("logger sends ten thousand lines over TCP", async () => {
  const file = join(folder, "lines.log");
  const args = ["--tcp", "-n", "127.0.0.1", "-P", String(ports.tcp), "-t", "logger-lines"];
  await run("logger", [...args, "-p", "mail.err", "--id=77", "--msgid", "M1", "-f", file]);
  await expectLines('{via="tcp", app="logger-lines"}', {
    ...{ facility: "mail", severity: "err", detected_level: "error", procid: "77", msgid: "M1" },
    timeQuality_tzKnown: "1",
  });
});

needs("logger")("logger sends the message of the documents", async () => {
  const changes = { "skald.example": "127.0.0.1", "5514": String(ports.tcp) };
  await run("bash", ["-c", docsCode("syslog.md", "\nlogger, for a try", changes)]);
  const fields = { app: "backup", facility: "local0", severity: "notice" };
  await expectLines('{app="backup"}', fields, ["backup done"]);
});

needs("logger")("logger sends its other forms", async () => {
  const some = lines.slice(0, 500);
  const file = join(folder, "some.log");
  writeFileSync(file, `${some.join("\n")}\n`);
  const at = (port: number) => ["-n", "127.0.0.1", "-P", String(port), "-f", file];
  await run("logger", ["--tcp", "--octet-count", "-t", "counted", ...at(ports.tcp)]);
  await expectLines('{via="tcp", app="counted"}', { facility: "user", severity: "notice" }, some);
  await run("logger", ["--udp", "-t", "datagrams", ...at(ports.udp)]);
  await expectLines('{via="udp", app="datagrams"}', { severity: "notice" }, some);
  await run("logger", ["--udp", "--rfc3164", "-t", "old", "--id=9", ...at(ports.udp)]);
  await expectLines('{via="udp", app="old"}', { severity: "notice", procid: "9" }, some);
});

const network = (port: number) =>
  `destination d_skald { network("127.0.0.1" port(${port}) transport("tcp")); };`;
const documented = (port: number) =>
  docsCode("syslog.md", "syslog-ng, `/etc/", {
    ...{ "skald.example": "127.0.0.1", "5514": String(port) },
  }).replace(/^log .*\n/m, "");
const secure = (port: number) => {
  const files = 'tls(ca-file("/etc/ssl/skald-ca.pem"))';
  expect(docsPage("syslog.md")).toContain(`\`${files}\``);
  const tls = `transport("tls") ${files.replace("/etc/ssl/skald-ca.pem", `${folder}/ca.pem`)}`;
  return documented(port).replace('transport("tcp")', tls);
};

for (const [name, via, destination] of [
  ["ng-lines", "tcp", network],
  ["ng-counted", "tcp", documented],
  ["ng-tls", "tls", secure],
] as const)
  needs("syslog-ng")(`syslog-ng sends ten thousand lines: ${name}`, async () => {
    await withAgent("syslog-ng", syslogNgConfig(name, destination(ports[via])), () =>
      expectLines(`{via="${via}", app="${name}"}`, { host: "box-2", facility: "local5" }),
    );
  });

function syslogNgConfig(name: string, destination: string): string[] {
  const path = join(folder, `${name}.conf`);
  const work = join(folder, name);
  mkdirSync(work, { recursive: true });
  writeFileSync(
    path,
    `@version: 3.38
source lines { file("${folder}/lines.log" follow-freq(0.1) default-facility(local5) default-priority(err) program-override("${name}") host-override("box-2") flags(no-parse)); };
${destination}
log { source(lines); destination(d_skald); flags(flow-control); };
`,
  );
  const files = ["persist-file", "control", "pidfile"].map((key) => `--${key}=${join(work, key)}`);
  return ["-F", "--no-caps", "-f", path, ...files];
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** Resolves when all was handed to the system. */
function send(socket: Socket, bytes: Uint8Array | string): Promise<void> {
  return new Promise((resolve, reject) =>
    socket.write(bytes, (error) => (error ? reject(error) : resolve())),
  );
}

/** Lines of RFC 3164 of a program, about `bytes` together. */
function linesOf(app: string, bytes: number): { readonly text: string; readonly count: number } {
  const time = new Date().toUTCString().replace(/^\w+, (\d+) (\w+) \d+ (\S+) GMT$/, "$2 $1 $3");
  const count = Math.ceil(bytes / 200);
  const each = (_: unknown, i: number) => `<134>${time} h ${app}: request ${i}`.padEnd(199, ".");
  return { text: `${Array.from({ length: count }, each).join("\n")}\n`, count };
}

it("waits with reading while a tenant may not push, and loses nothing", async () => {
  const { text, count } = linesOf("fast", 8 * 1024 * 1024);
  const socket = await open(ports.tcp);
  await send(socket, text);
  socket.end();
  await untilCounted('{app="fast"}', count);
  const refused = { reason: "rate_limited" };
  expect(await readMetric(server.url, "loki_discarded_samples_total", refused)).toBeGreaterThan(0);
  expect(await readMetric(server.url, "loki_syslog_messages_dropped_total")).toBe(0);
});

it("stores what it accepted before it ends", async () => {
  const other = makeFolder();
  const { cert, key } = authority.issue("server");
  for (const [name, text] of Object.entries({ cert, key }))
    writeFileSync(join(other, `${name}.pem`), text);
  const flags = [`-config.file=${writeConfig(other)}`];
  const first = await startServer(other, flags);
  const { text, count } = linesOf("last", 1024 * 1024);
  const socket = await open(portsOf(first).tcp);
  socket.on("error", () => undefined);
  // The kernel takes connections, and what they send, before the server accepts them.
  await waitFor(async () => (await readMetric(first.url, "loki_syslog_connections")) >= 1);
  await send(socket, text);
  // A peer that closes at once when it is asked to.
  expect(await first.kill("SIGTERM")).toBe(0);
  const again = await startServer(other, flags);
  await untilCounted('{app="last"}', count, again.url);
  await again.kill("SIGTERM");
});

it("bounds a message that never ends, and serves others meanwhile", async () => {
  const endless = await open(ports.tcp);
  await send(endless, "<134>1 - h endless - - - ");
  const chunk = Buffer.alloc(1024 * 1024, "x");
  const before = peakMemoryBytes(server);
  for (let i = 0; i < 64; i++) await send(endless, chunk);
  const other = await open(ports.tcp);
  await send(other, "<134>1 - h calm - - - one\n");
  await untilCounted('{app="calm"}', 1);
  endless.end();
  other.end();
  await waitFor(async () => (await readMetric(server.url, "loki_syslog_messages_cut_total")) >= 1);
  if (before > 0) expect(peakMemoryBytes(server) - before).toBeLessThan(64 * 1024 * 1024);
});

it("keeps invalid UTF-8 and NUL from hurting other lines", async () => {
  const socket = await open(ports.tcp);
  const bad = Buffer.from(
    '<134>1 - h\xff\0 odd \xfe - [\xff@1 \xfe="\xfd"] \xff\0\xfe|\n',
    "latin1",
  );
  await send(socket, Buffer.concat([bad, Buffer.from("<134>1 - h odd - - - good\n"), bad]));
  socket.end();
  await untilCounted('{app="odd"}', 3);
  const lines = (await rowsOf('{app="odd"}')).map(({ line }) => line);
  expect(lines.filter((line) => line === "good")).toHaveLength(1);
});

it("drops and counts datagrams that it cannot take, with flat memory", async () => {
  const socket = createSocket("udp4");
  const message = Buffer.from(`<134>1 - h flood - - - ${"x".repeat(1300)}`);
  const sendOne = () =>
    new Promise<void>((resolve) => socket.send(message, ports.udp, "127.0.0.1", () => resolve()));
  const before = peakMemoryBytes(server);
  let sent = 0;
  // The tenant may store 2 MB a second, so that soon there is no room.
  await waitFor(async () => {
    await Promise.all(Array.from({ length: 2000 }, sendOne));
    sent += 2000;
    const dropped = { reason: "no_room" };
    return (await readMetric(server.url, "loki_syslog_messages_dropped_total", dropped)) > 0;
  });
  socket.close();
  const got = await readMetric(server.url, "loki_syslog_messages_received_total", {
    listener: "udp/127.0.0.1:0",
  });
  expect(got).toBeLessThan(sent + 1000);
  if (before > 0) expect(peakMemoryBytes(server) - before).toBeLessThan(96 * 1024 * 1024);
});

it("refuses a peer without TLS on a port of TLS", async () => {
  const plain = await open(ports.tls);
  plain.on("error", () => undefined);
  const closed = once(plain, "close");
  await send(plain, "<134>1 - h plain - - - x\n");
  await closed;
  const socket = connectTls({ port: ports.tls, host: "127.0.0.1", ca: authority.cert });
  await once(socket, "secureConnect");
  socket.end("<134>1 - h secure - - - x\n");
  await untilCounted('{app="secure"}', 1);
  expect(await queryNumber(server.url, 'count_over_time({app="plain"}[1h])')).toBe(0);
});

it("takes the listeners of the documents", async () => {
  const path = join(folder, "documented.yaml");
  const listeners = docsCode("syslog.md", "# Syslog", {
    ...{ "/etc/skald/cert.pem": join(folder, "cert.pem") },
    ...{
      "/etc/skald/key.pem": join(folder, "key.pem"),
      "/etc/skald/ca.pem": join(folder, "ca.pem"),
    },
  });
  writeFileSync(path, `common: {path_prefix: ${folder}}\n${schema}${listeners}`);
  const found = await runProgram(binSkald, ["config", "check", path]);
  expect(found).toMatchObject({ code: 0, stderr: "" });
});

it("does not start where a port is taken", async () => {
  const other = makeFolder();
  const config = join(other, "c.yaml");
  writeFileSync(
    config,
    `auth_enabled: false\nsyslog: {listeners: [{address: "127.0.0.1:${ports.tcp}"}]}\n`,
  );
  const started = spawnServer(other, [`-config.file=${config}`]);
  await expect(untilReady(started)).rejects.toThrow(
    /the syslog listener tcp\/\S+ cannot be opened/,
  );
});

async function run(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, TZ: "UTC" },
  });
  let text = "";
  child.stderr.on("data", (chunk: Buffer) => (text += chunk));
  const [code] = await once(child, "exit");
  expect({ code, text }).toEqual({ code: 0, text: "" });
}
