import { spawn } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import { queryNumber, queryStreams } from "./testing/client.js";
import { docsCode } from "./testing/docs-page.js";
import { recordedRequests } from "./testing/recorded-requests.js";
import {
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

const lineCount = 10_000;
/** Packages without a program of their own, beside those of the program that loads them. */
const hasRsyslogModule = readdirSync("/usr/lib").some((name) =>
  existsSync(`/usr/lib/${name}/rsyslog/omelasticsearch.so`),
);
const hasSyslogNgLibrary = existsSync("/usr/share/syslog-ng/include/scl/elasticsearch");

let server: TestServer;
let folder: string;
/** Texts with what JSON and syslog escape; each is unique. */
let lines: readonly string[];

beforeAll(async () => {
  folder = makeFolder();
  server = await startServer(folder);
  lines = Array.from({ length: lineCount }, (_, i) => `level=warn msg="a \\ \t b ü" id=${i}`);
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

/** What is here in place of an address of the documents. */
const here = () => ({ "http://skald:3100": server.url });

/** Runs a program that never ends until all lines of a stream are there. */
async function runUntilStored(
  selector: string,
  command: string,
  args: readonly string[],
  input?: string,
): Promise<void> {
  const child = spawn(command, args, { stdio: ["pipe", "ignore", "inherit"] });
  const gone = new Promise((resolve) => child.once("close", resolve));
  try {
    if (input !== undefined) child.stdin.write(input);
    await waitFor(async () => (await countOf(selector)) >= lineCount);
  } finally {
    child.kill("SIGTERM");
    await gone;
  }
  expect(await countOf(selector)).toBe(lineCount);
}

async function countOf(selector: string): Promise<number> {
  return queryNumber(server.url, `sum(count_over_time(${selector}[1h]))`);
}

interface Row {
  readonly labels: Readonly<Record<string, string>>;
  readonly line: string;
}

/** Every row of a query, 5000 at a time by their number `id=`. */
async function rowsOf(selector: string): Promise<readonly Row[]> {
  const halves = ["id=[0-4]?[0-9]{1,3}\\\\D*$", "id=[5-9][0-9]{3}\\\\D*$"];
  const found = await Promise.all(
    halves.map((half) => queryStreams(server.url, `${selector} |~ "${half}"`)),
  );
  return found
    .flat()
    .flatMap(({ stream, values }) => values.map(([, line]) => ({ labels: stream, line })));
}

async function messagesOf(selector: string, textOf: (line: string) => string) {
  return (await rowsOf(selector)).map(({ line }) => textOf(line)).sort();
}

function sorted(texts: readonly string[]): readonly string[] {
  return [...texts].sort();
}

needs(hasRsyslogModule ? "rsyslogd" : "rsyslog-elasticsearch")(
  "omelasticsearch of rsyslog sends ten thousand lines",
  async () => {
    const input = join(folder, "rsyslog.log");
    const config = join(folder, "rsyslog.conf");
    writeFileSync(input, `${lines.join("\n")}\n`);
    writeFileSync(
      config,
      `global(workDirectory="${folder}")
module(load="imfile" mode="polling" pollingInterval="1")
input(type="imfile" File="${input}" Tag="shop:")
${docsCode("doors/elasticsearch.md", "## rsyslog", here())}`,
    );
    const selector = '{service_name="unknown_service", HOST=""} | _index="syslog"';
    const args = ["-n", "-f", config, "-i", join(folder, "rsyslogd.pid")];
    await runUntilStored(selector, "rsyslogd", args);
    const messages = await messagesOf(selector, (line) => JSON.parse(line).message as string);
    expect(messages).toEqual(sorted(lines));
    const [row] = await rowsOf(selector);
    expect(JSON.parse(row!.line)).toMatchObject({
      ...{ app: "shop", host: expect.any(String), severity: "notice" },
    });
  },
);

describe("syslog-ng", () => {
  const run = (name: string, selector: string, destination: string) => {
    const config = join(folder, `${name}.conf`);
    writeFileSync(
      config,
      `@version: 3.38
${destination}
source lines { stdin(flags(no-parse) log-fetch-limit(1000) log-iw-size(10000)); };
log { source(lines); destination(skald); flags(flow-control); };
`,
    );
    const files = ["persist-file", "control", "pidfile"].map(
      (key) => `--${key}=${join(folder, `${name}.${key}`)}`,
    );
    const args = ["-F", "--no-caps", "-f", config, ...files];
    return runUntilStored(selector, "syslog-ng", args, `${lines.join("\n")}\n`);
  };

  needs(hasSyslogNgLibrary ? "syslog-ng" : "syslog-ng-scl")(
    "sends ten thousand lines by elasticsearch-http",
    async () => {
      const destination = docsCode("doors/elasticsearch.md", "## syslog-ng", here());
      await run("elastic", '{HOST=~".+"}', destination);
      const rows = await rowsOf('{HOST=~".+"}');
      expect(rows.map(({ line }) => line).sort()).toEqual(sorted(lines));
      expect(rows[0]!.labels).toMatchObject({
        _index: "syslog",
        PRIORITY: "notice",
        FACILITY: "user",
      });
    },
  );

  needs("syslog-ng")("sends ten thousand lines to Splunk's collector", async () => {
    await run("hec", '{sourcetype="syslog"}', docsCode("doors/splunk.md", "## syslog-ng", here()));
    const rows = await rowsOf('{sourcetype="syslog"}');
    expect(rows.map(({ line }) => line).sort()).toEqual(sorted(lines));
    expect(rows[0]!.labels).toMatchObject({
      host: expect.any(String),
      source: "lines",
    });
  });
});

needs("/usr/lib/systemd/systemd-journal-upload")(
  "systemd-journal-upload sends ten thousand entries",
  async () => {
    const tools = "/usr/lib/systemd";
    const exported = join(folder, "export.bin");
    const journal = join(folder, "remote.journal");
    const sinceUs = (Date.now() - 600_000) * 1000;
    writeFileSync(exported, Buffer.concat(lines.map((line, i) => entryOf(line, i, sinceUs + i))));
    await finished(`${tools}/systemd-journal-remote`, ["-o", journal, exported]);
    const settings = docsCode("doors/journald.md", "As journal-upload.conf:", here());
    await finished(`${tools}/systemd-journal-upload`, [
      `--url=${/^URL=(.*)$/m.exec(settings)?.[1]}`,
      `--file=${journal}`,
      `--save-state=${join(folder, "upload.state")}`,
      "--follow=no",
    ]);
    const selector = '{_HOSTNAME="box"}';
    expect(await countOf(selector)).toBe(lineCount);
    const messages = await messagesOf(selector, (line) => line.replace("\n", ""));
    expect(messages).toEqual(sorted(lines));
    const found = await queryStreams(server.url, `${selector} | _PID="4321"`);
    expect(found).toEqual([
      {
        stream: {
          _HOSTNAME: "box",
          SYSLOG_IDENTIFIER: "app",
          service_name: "unknown_service",
          _BOOT_ID: bootId,
          _PID: "4321",
          PRIORITY: "4",
          level: "warn",
          detected_level: "warn",
        },
        values: [[`${sinceUs + 4321}000`, lines[4321]]],
      },
    ]);
  },
);

const bootId = "0123456789abcdef0123456789abcdef";

/** An entry in the export format; every tenth message has a line feed, and so the form for any bytes. */
function entryOf(line: string, i: number, timeUs: number): Buffer {
  const message = Buffer.from(i % 10 === 0 ? `\n${line}` : line);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(message.length));
  const field = i % 10 === 0 ? ["MESSAGE\n", length, message] : ["MESSAGE=", message];
  const head = `__CURSOR=i=${i}\n__REALTIME_TIMESTAMP=${timeUs}\n__MONOTONIC_TIMESTAMP=${1000 + i}\n`;
  const rest = `\n_BOOT_ID=${bootId}\n_HOSTNAME=box\nPRIORITY=4\nSYSLOG_IDENTIFIER=app\n_PID=${i}\n\n`;
  return Buffer.concat([head, ...field, rest].map((part) => Buffer.from(part)));
}

needs("curl")("curl sends ten thousand lines of JSON, plain and packed", async () => {
  const input = join(folder, "app.jsonl");
  const now = Date.now();
  const objects = lines.map((message, i) =>
    JSON.stringify({
      _time: new Date(now - 60_000 + i).toISOString(),
      app: "curl",
      id: i,
      message,
    }),
  );
  writeFileSync(input, `${objects.join("\n")}\n`);
  const commands = docsCode("doors/json-lines.md", "## curl", here()).split("\n").filter(Boolean);
  const [plain = "", packed = ""] = commands;
  const rows = async (query: string) =>
    (await queryStreams(server.url, query)).flatMap(({ values }) => values);
  const time = `${now - 60_000 + 4321}000000`;
  for (const [command, wanted] of [
    [plain, [time, lines[4321]]],
    [packed, [time, objects[4321]]],
  ] as const) {
    await finished("bash", ["-c", `cd "${folder}" && ${command.replace("curl ", "curl -sSf ")}`]);
    const isOther = command === plain ? 'id != ""' : 'id = ""';
    expect(await countOf(`{app="curl"} | ${isOther}`)).toBe(lineCount);
    expect(await rows(`{app="curl"} | ${isOther} |= "4321"`)).toEqual([wanted]);
  }
});

describe("recorded requests", () => {
  it.each(recordedRequests)("of $agent are answered and stored", async (recorded) => {
    for (const { method, path, headers, body, status, answer } of recorded.requests) {
      const response = await fetch(`${server.url}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: body(Date.now()) }),
      });
      expect([path, response.status]).toEqual([path, status]);
      const text = await response.text();
      if (answer !== undefined) expect(text).toMatch(answer);
    }
    const found = await queryStreams(server.url, recorded.query);
    const rows = found.map(({ stream, values }) => ({ stream, lines: values.map(([, l]) => l) }));
    rows.sort((a, b) => (String(a.lines) < String(b.lines) ? -1 : 1));
    expect(rows).toEqual(recorded.stored);
  });
});

/** Runs a program to its end; rejects if it fails. */
function finished(command: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
    let errors = "";
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child.once("error", reject);
    child.once("exit", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ended with ${code}: ${errors}`));
    });
  });
}
