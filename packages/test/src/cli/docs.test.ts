import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nowNs, pushJson } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
} from "../testing/server.js";

const page = readFileSync(
  fileURLToPath(new URL("../../../../docs/cli.md", import.meta.url)),
  "utf8",
);
const blocks = [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, text = ""]) => text);
const commands = blocks.flatMap((text) => text.split("\n")).filter((line) => line.trim() !== "");
const run = promisify(execFile);

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer(makeFolder(), [
    "-compactor.retention-enabled=true",
    "-compactor.delete-request-store=filesystem",
  ]);
  const line = JSON.stringify({ level: "error", status: 503, msg: "timeout", trace_id: "t" });
  await pushJson(server.url, { app: "shop" }, [[nowNs(), line]]);
  folder = makeFolder();
  mkdirSync(join(folder, "logs"));
  mkdirSync(join(folder, "data/chunks/tenant=fake"), { recursive: true });
  for (const name of ["app.log", "logs/a.log"]) writeFileSync(join(folder, name), `${line}\n`);
  writeFileSync(join(folder, "skald.yaml"), "server: {log_level: info}\n");
  writeFileSync(
    join(folder, "rules.yaml"),
    'groups:\n  - name: g\n    rules:\n      - alert: A\n        expr: sum(rate({app="shop"}[1m])) > 1\n',
  );
  writeFileSync(
    join(folder, "tests.yaml"),
    "rule_files: [rules.yaml]\ntests: [{alert_rule_test: [{alertname: A, eval_time: 1m}]}]\n",
  );
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

describe("docs/cli.md", () => {
  it.each(commands)("%s", async (command) => {
    const functions = `skald() { "${process.execPath}" "${binSkald}" "$@"; }; kubectl() { cat app.log; }`;
    const text = command.replaceAll("http://localhost:3100", server.url);
    const env = {
      ...process.env,
      SKALD_ADDR: server.url,
      SKALD_CONFIG: join(folder, "config.yaml"),
    };
    const { stderr } = await run("bash", ["-c", `set -o pipefail; ${functions}; ${text}`], {
      cwd: folder,
      env,
    });
    expect(stderr).not.toMatch(/^error|unknown (command|option)|not reached/m);
  });
});
