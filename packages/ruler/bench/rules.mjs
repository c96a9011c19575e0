// What rules cost: a whole process with 1000 rules that are evaluated each minute over lines that were just pushed; prints
// the CPU of the process per minute beside that of one without rules. Run: node packages/ruler/bench/rules.mjs [rules] [lines]
import { spawn } from "node:child_process";
// Last: 2.0 % of a core where rules find no new lines; 11.8 % where each reads the 2000 lines of its stream, with the start in it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [rules = 1000, lines = 200_000] = process.argv.slice(2).map(Number);
const main = fileURLToPath(new URL("../../skald/bundle/main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "ruler-bench-"));
const seconds = 60;
const ticksPerSecond = 100;

const limits = { ingestion_rate_mb: 1000, ingestion_burst_size_mb: 1000 };
const config = join(folder, "config.yaml");
writeFileSync(
  config,
  JSON.stringify({ auth_enabled: false, server: { log_format: "json" }, limits_config: limits }),
);
const server = spawn(
  process.execPath,
  [main, `-config.file=${config}`, `-common.path-prefix=${folder}`, "-server.http-listen-port=0"],
  { stdio: ["ignore", "ignore", "pipe"] },
);
let log = "";
server.stderr.on("data", (chunk) => {
  log += chunk;
});
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
while (!/"msg":"ready"/.test(log)) await wait(50);
const url = `http://127.0.0.1:${/"port":(\d+)/.exec(log)[1]}`;

/** CPU seconds of the process so far. */
function cpuSeconds() {
  const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** CPU seconds of a minute, from some seconds of it. */
async function measure(part) {
  const before = cpuSeconds();
  await wait(part * 1000);
  return ((cpuSeconds() - before) / part) * seconds;
}

try {
  for (let from = 0; from < lines; from += 10_000) {
    const streams = Array.from({ length: 100 }, (_, app) => ({
      stream: { app: `app-${app}`, env: "bench" },
      values: Array.from({ length: 100 }, (_, i) => [
        String(BigInt(Date.now()) * 1_000_000n + BigInt(from + i)),
        `level=${i % 10 === 0 ? "error" : "info"} msg="request ${from + i}" duration=${i}ms path=/items/${i} ${"x".repeat(100)}`,
      ]),
    }));
    const body = JSON.stringify({ streams });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/loki/api/v1/push`, {
      method: "POST",
      headers,
      body,
    });
    if (answer.status !== 204) throw new Error(`push: ${answer.status} ${await answer.text()}`);
  }
  const idle = await measure(10);
  for (let group = 0; group * 10 < rules; group++) {
    const made = Array.from({ length: 10 }, (_, i) => {
      const app = `app-${(group * 10 + i) % 100}`;
      const expr = `sum by (app) (rate({app="${app}"} |= "error" [10m]))`;
      return i % 2 === 0 ? { alert: `A${i}`, expr: `${expr} > 1000` } : { record: `r:${i}`, expr };
    });
    const body = JSON.stringify({ name: `g${group}`, interval: "1m", rules: made });
    await fetch(`${url}/loki/api/v1/rules/bench`, { method: "POST", body });
  }
  // With the first minute's compiling and loading.
  const busy = await measure(seconds);
  const text = await (await fetch(`${url}/metrics`)).text();
  const sum = (name) =>
    [...text.matchAll(new RegExp(`^loki_prometheus_${name}\\{.*\\} (\\d+)$`, "gm"))].reduce(
      (all, [, n]) => all + Number(n),
      0,
    );
  const cost = busy - idle;
  console.table({
    rules,
    "evaluated in all": sum("rule_evaluations_total"),
    failed: sum("rule_evaluation_failures_total"),
    missed: sum("rule_group_iterations_missed_total"),
    "CPU s a minute without": idle.toFixed(2),
    "CPU s a minute with": busy.toFixed(2),
    "share of a core": `${((cost / seconds) * 100).toFixed(1)} %`,
  });
} finally {
  const gone = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  await gone;
  rmSync(folder, { recursive: true, force: true });
}
