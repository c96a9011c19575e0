// What it costs to move in: `node bench/import.mjs --store DIR --loki http://127.0.0.1:3200,PID --tenant bench [--since 24h]`. DIR is the
// object store of that Loki, which has flushed everything (stop it once). Copies it, pulls the same lines through Loki's API, exports
// them and pushes the exported file, each into an empty Skald, and prints raw MB per CPU second and per second of each way.
//
// 2 cores, which the source, the command and the target share; figures in bench/README.md.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values: args } = parseArgs({
  options: {
    store: { type: "string" },
    loki: { type: "string" },
    tenant: { type: "string", default: "bench" },
    since: { type: "string", default: "24h" },
    selector: { type: "string", default: '{app=~".+"}' },
    port: { type: "string", default: "3178" },
  },
});
const root = new URL("..", import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), "skald-import-"));
const [lokiUrl, lokiPid] = args.loki.split(",");
const file = join(dir, "lines.log");
const rows = [];
const tenant = ["--org-id", args.tenant];
const range = ["--since", args.since];
let server;
try {
  await measured("import loki-store", {}, () =>
    skald(["import", "loki-store", args.store, "--into", join(dir, "store/chunks"), "--quiet"]),
  );
  await startServer("api");
  await measured("import loki (API)", { source: lokiPid, target: server.pid }, () =>
    skald([
      ...["import", "loki", args.selector, "--from-addr", lokiUrl, "--from-org-id", args.tenant],
      ...[...tenant, ...range, "--no-verify", "--quiet", "--state", join(dir, "import.state")],
    ]),
  );
  await measured("export", { target: server.pid }, () =>
    skald(["export", args.selector, ...tenant, ...range, "-o", file, "--quiet"]),
  );
  await endServer();
  await startServer("push");
  await measured("push", { target: server.pid }, () =>
    skald(["push", file, ...tenant, "--label", "app=push", "--quiet"]),
  );
  print();
} finally {
  await endServer();
  rmSync(dir, { recursive: true });
}

/** Runs a way and notes its seconds, its CPU seconds, and those of other processes meanwhile. */
async function measured(name, pids, run) {
  const before = Object.fromEntries(Object.entries(pids).map(([of, pid]) => [of, cpuOf(pid)]));
  const start = performance.now();
  const command = await run();
  const seconds = (performance.now() - start) / 1000;
  const others = Object.entries(pids).map(([of, pid]) => [of, cpuOf(pid) - before[of]]);
  rows.push({ name, seconds, command, ...Object.fromEntries(others) });
}

/** Resolves with the CPU seconds of a command, as the shell's `time` counts them. */
async function skald(argv) {
  const script = 'TIMEFORMAT="cpu %U %S"; time "$0" "$@"';
  const child = spawn("bash", ["-c", script, join(root, "bin/skald"), ...argv], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...process.env,
      SKALD_ADDR: `http://127.0.0.1:${args.port}`,
      SKALD_CONFIG: "/nonexistent",
    },
  });
  let errors = "";
  child.stderr.on("data", (data) => {
    errors += data;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  const [, user, system] = /^cpu (\S+) (\S+)$/m.exec(errors) ?? [];
  if (code !== 0) throw new Error(`${argv.slice(0, 2).join(" ")} ended with ${code}: ${errors}`);
  return Number(user) + Number(system);
}

async function startServer(name) {
  server = spawn(
    join(root, "bin/skald"),
    [
      `-config.file=${join(root, "bench/skald.yaml")}`,
      ...["-auth.enabled=true", "-validation.reject-old-samples=false"],
      `-common.path-prefix=${join(dir, name)}`,
      `-server.http-listen-port=${args.port}`,
    ],
    { cwd: dir, stdio: ["ignore", "ignore", process.env.VERBOSE ? "inherit" : "ignore"] },
  );
  const ready = () =>
    fetch(`http://127.0.0.1:${args.port}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await ready())) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function endServer() {
  if (server === undefined || server.exitCode !== null) return;
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGKILL");
  await ended;
}

function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function print() {
  const rawMb = statSync(file).size / 1e6;
  console.log(`${rawMb.toFixed(0)} MB raw`);
  const table = rows.map(({ name, seconds, command, source = 0, target = 0 }) => ({
    ...{ way: name, seconds: seconds.toFixed(1), "MB/s": (rawMb / seconds).toFixed(1) },
    ...{
      "command CPU-s": command.toFixed(1),
      "Skald CPU-s": target.toFixed(1),
      "Loki CPU-s": source.toFixed(1),
    },
    "MB per CPU-s, Skald and command": (rawMb / (command + target)).toFixed(1),
    "MB per CPU-s, with Loki": (rawMb / (command + target + source)).toFixed(1),
  }));
  console.table(table);
}
