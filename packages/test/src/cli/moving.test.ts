import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { freePort } from "@skald/testkit";
import { needs } from "@skald/testkit/needs";
import { queryNumber } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";

const page = readFileSync(
  fileURLToPath(new URL("../../../../docs/moving-from-loki.md", import.meta.url)),
  "utf8",
);
const blocks = [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, text = ""]) => text);
const [settings = "", ...steps] = blocks;
const run = promisify(execFile);
const headers = { "x-scope-orgid": "shop" };

/** A server in Loki's place, and the one to move to. */
let loki: TestServer;
let skald: TestServer;
let folder: string;
let port: number;

beforeAll(async () => {
  folder = makeFolder();
  const flags = ["-auth.enabled=true", "-validation.reject-old-samples=false"];
  [loki, skald] = await Promise.all([
    startServer(makeFolder(), flags),
    startServer(makeFolder(), flags),
  ]);
  port = await freePort();
  mkdirSync(join(folder, "loki/chunks"), { recursive: true });
  const store = new URL("../../../loki-store/testdata/gzip.tar.gz", import.meta.url);
  execFileSync("tar", ["xzf", fileURLToPath(store), "-C", join(folder, "loki/chunks")]);
  writeFileSync(
    join(folder, "loki.yaml"),
    "auth_enabled: true\ningester: {chunk_encoding: snappy}\n",
  );
  const group = 'name: g\nrules:\n  - alert: A\n    expr: sum(rate({app="shop"}[1m])) > 1\n';
  const answer = await fetch(`${loki.url}/loki/api/v1/rules/team`, {
    ...{ method: "POST", headers: { ...headers, "content-type": "application/yaml" }, body: group },
  });
  expect(answer.status).toBe(202);
  // Lines of before the agents wrote to both.
  const values = Array.from({ length: 500 }, (_, i) => [
    `${BigInt(Date.now() - 7_200_000 + i) * 1_000_000n}`,
    `old ${i}`,
  ]);
  const body = JSON.stringify({ streams: [{ stream: { app: "shop" }, values }] });
  const pushed = await fetch(`${loki.url}/loki/api/v1/push`, {
    ...{ method: "POST", headers: { ...headers, "content-type": "application/json" }, body },
  });
  expect(pushed.status).toBe(204);
});
afterAll(async () => {
  await Promise.all([loki, skald].map((one) => one.kill("SIGTERM")));
  await removeFolders();
});

/** A text of the page with the places of this test. */
function here(text: string): string {
  return text
    .replaceAll("http://loki:3100", loki.url)
    .replaceAll("http://skald:3100", skald.url)
    .replaceAll(/ \/(loki|skald)\/chunks/g, ` ${folder}/$1/chunks`)
    .replaceAll("/var/spool/rsyslog", folder)
    .replaceAll("/usr/local/bin/skald", `${process.execPath} ${binSkald}`)
    .replaceAll("5514", String(port));
}

describe("docs/moving-from-loki.md", () => {
  needs("syslog-ng")("its syslog-ng.conf writes to both", async () => {
    const files = ["persist-file", "control", "pidfile"].map(
      (key) => `--${key}=${join(folder, key)}`,
    );
    const args = ["-F", "--no-caps", "-f", configOf("syslog-ng"), ...files];
    const lines = Array.from({ length: 1000 }, (_, i) => `{"id": ${i}, "path": "C:\\\\x"}\n`);
    await untilBothHave("syslog-ng", args, lines, '{app="syslog"} | json | path = `C:\\x`');
  });

  needs("rsyslogd")("its rsyslog.conf writes to both", async () => {
    const args = ["-n", "-f", configOf("rsyslog"), "-i", join(folder, "rsyslogd.pid")];
    const at = new Date().toISOString();
    const lines = Array.from(
      { length: 1000 },
      (_, i) => `<12>1 ${at} web shop 7 - - request ${i} "C:\\x" caf\u00e9\n`,
    );
    const selector = '{job="rsyslog"} | host="web" | level="warn" |= `"C:\\x" caf\u00e9`';
    await untilBothHave("rsyslogd", args, lines, selector);
  });

  needs("curl")("its commands bring lines and rules over", async () => {
    const env = { ...process.env, SKALD_CONFIG: join(folder, "config.yaml") };
    const start = [
      "set -eo pipefail",
      `skald() { "${process.execPath}" "${binSkald}" "$@"; }`,
      here(settings),
    ];
    for (const step of steps)
      await run("bash", ["-c", [...start, here(step)].join("\n")], { cwd: folder, env });
    const old = 'sum(count_over_time({app="shop"} |= "old" [3h]))';
    expect(await queryNumber(skald.url, old, headers)).toBe(500);
    const rules = await fetch(`${skald.url}/loki/api/v1/rules/team`, { headers });
    expect(await rules.text()).toContain("alert: A");
  });
});

/** Writes the configuration that the page has for an agent, and gives its path. */
function configOf(agent: string): string {
  const [, text = ""] = new RegExp(`\`\`\`${agent}\\n(.*?)\`\`\``, "s").exec(page) ?? [];
  const path = join(folder, `${agent}.conf`);
  writeFileSync(path, here(text));
  return path;
}

/** Runs an agent until each line that was sent to its port is on both servers. */
async function untilBothHave(
  agent: string,
  args: readonly string[],
  lines: readonly string[],
  selector: string,
): Promise<void> {
  const child = spawn(agent, args, { stdio: "inherit" });
  const gone = new Promise((resolve) => child.once("close", resolve));
  try {
    await waitFor(() => send(lines.join("")));
    const count = `sum(count_over_time(${selector} [1h]))`;
    for (const { url } of [loki, skald])
      await waitFor(async () => (await queryNumber(url, count, headers)) === lines.length);
  } finally {
    child.kill("SIGTERM");
    await gone;
  }
}

/** Sends a text to the port of the agent; false while nothing listens. */
function send(text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(text, () => resolve(true)));
    socket.once("error", () => resolve(false));
  });
}
