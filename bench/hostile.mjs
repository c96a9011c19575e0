// What one client can do to the others: `node bench/hostile.mjs --url U --pid P [--only B3,B4] [--times 30] [--keep]`.
// Pushes what it needs under tenants of its own (all into one where the server has one), runs case after case, and measures
// what others feel meanwhile: `/ready`, a tiny query, a small push, each asked for at a fixed pace from a thread of its own, so
// that what this program reads does not count. Prints a Markdown table. `--keep` takes the data that an earlier run pushed.
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { casesOf } from "./hostile/cases.mjs";
import { openClient } from "./hostile/client.mjs";
import { pushData } from "./hostile/data.mjs";
import { startProbes } from "./hostile/probes.mjs";

const goals = { readyP99Ms: 20, tinyTimesIdle: 5, peakMiB: 1536 };
/** A case that takes longer is given up. */
const caseTimeoutMs = 180_000;
/** Longest wait for the server to be calm again before the next case. */
const calmTimeoutMs = 120_000;

const { values: args } = parseArgs({
  options: {
    url: { type: "string" },
    pid: { type: "string" },
    only: { type: "string" },
    times: { type: "string" },
    keep: { type: "boolean", default: false },
    json: { type: "string" },
  },
});
if (args.url === undefined || args.pid === undefined) {
  console.error(
    "usage: node bench/hostile.mjs --url URL --pid PID [--only B3,B4] [--times 30] [--keep] [--json FILE]",
  );
  process.exit(2);
}
const client = await openClient(args.url);
const cases = casesOf(client).filter(({ name }) => isWanted(name));
await pushData(client, new Set(cases.flatMap(({ needs }) => needs)), { keep: args.keep });

// The first seconds of a process show how it warms up.
await measure({ name: "idle", what: "nothing", times: 0, run: () => sleep(5000) });
const idle = await measure({ name: "idle", what: "nothing", times: 0, run: () => sleep(5000) });
const rows = [idle];
print(idle);
for (const each of cases) {
  const row = await measure({ ...each, times: Number(args.times ?? each.times) });
  row.breaks = breaksOf(row);
  rows.push(row);
  print(row);
  if (row.gone) break;
}
console.log(`\n${tableOf(rows)}`);
if (args.json !== undefined) writeFileSync(args.json, JSON.stringify(rows, undefined, 1));
client.close();
process.exit(rows.some(({ gone }) => gone) ? 1 : 0);

function isWanted(name) {
  const wanted = args.only?.split(",");
  return (
    wanted === undefined ||
    wanted.some((text) => name === text || name.replace(/[a-z]$/, "") === text)
  );
}

async function measure({ name, what, times, run }) {
  await calm();
  resetPeak();
  await readLoop();
  const probes = startProbes(args.url, client.tenantB);
  const giveUp = AbortSignal.timeout(caseTimeoutMs);
  const startMs = performance.now();
  // The first call of each probe is on its way before the case begins.
  await sleep(300);
  let own = [];
  if (name === "idle") await run();
  else own = await Promise.all(run(times, giveUp));
  const tookMs = performance.now() - startMs;
  await sleep(300);
  const felt = await probes.stop();
  const gone = !isRunning();
  const row = { name, what, times, own: summaryOf(own), tookMs, ...felt, gone };
  if (gone) return row;
  return { ...row, loop: await readLoop(), peakMiB: peakMiB() };
}

/** Statuses with how often they came, the first text of those that are no success, and how long the calls took. */
function summaryOf(answers) {
  const counts = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  const error = answers.find(({ status }) => !(status >= 200 && status < 300))?.text;
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  const extra = answers.flatMap((answer) => answer.extra ?? [])[0];
  return { counts, error, p50: quantile(times, 0.5), max: times.at(-1), extra };
}

function breaksOf({ gone, ready, tiny, peakMiB }) {
  if (gone) return "the process is gone";
  const found = [];
  if (ready.p99 > goals.readyP99Ms) found.push("ready");
  if (tiny.p50 > goals.tinyTimesIdle * idle.tiny.p50) found.push("tiny query");
  if (peakMiB > goals.peakMiB) found.push("memory");
  return found.join(", ");
}

function tableOf(all) {
  const head = [
    "case",
    "what",
    "calls",
    "answers",
    "own p50 / max",
    "ready p50 / p99 / max",
    "tiny query",
    "small push",
    "loop p99 / max",
    "peak MiB",
    "beyond",
  ];
  const lines = all.map((row) => [
    row.name,
    row.what.replaceAll("|", "\\|"),
    row.times,
    Object.entries(row.own.counts)
      .map(([status, count]) => `${count} x ${status}`)
      .join(", "),
    row.own.max === undefined
      ? ""
      : `${ms(row.own.p50)} / ${ms(row.own.max)}${row.own.extra === undefined ? "" : `; ${row.own.extra}`}`,
    ...[row.ready, row.tiny, row.push].map(
      (felt) =>
        `${ms(felt.p50)} / ${ms(felt.p99)} / ${ms(felt.max)}${felt.failed > 0 ? ` (${felt.failed} failed)` : ""}`,
    ),
    row.loop === undefined ? "" : `${ms(row.loop.p99)} / ${ms(row.loop.max)}`,
    row.peakMiB ?? "",
    row.breaks ?? "",
  ]);
  const title = `Delays in ms unless said otherwise; a shared machine of ${navigator.hardwareConcurrency} cores, clients included.`;
  return [title, "", head, head.map(() => "---"), ...lines]
    .map((line) => (Array.isArray(line) ? `| ${line.join(" | ")} |` : line))
    .join("\n");
}

function print(row) {
  const { name, own, tookMs, ready, tiny, push, peakMiB: peak, breaks } = row;
  const felt = [ready, tiny, push]
    .map(({ p50, p99, max }) => `${ms(p50)}/${ms(p99)}/${ms(max)}`)
    .join("  ");
  console.log(
    `${name.padEnd(5)} ${JSON.stringify(own.counts)} ${ms(tookMs)} ms  ready, tiny, push ${felt}  ${peak} MiB  ${breaks ?? ""}`,
  );
  if (own.error !== undefined) console.log(`      ${own.error.slice(0, 200)}`);
}

function ms(value) {
  if (value === undefined) return "-";
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}

function quantile(sorted, q) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

/** Resolves when the process takes less than a fifth of a core for a second. */
async function calm() {
  const until = performance.now() + calmTimeoutMs;
  while (isRunning() && performance.now() < until) {
    const before = cpuTicks();
    await sleep(1000);
    if (cpuTicks() - before < 20) return;
  }
}

function cpuTicks() {
  try {
    const fields = readFileSync(`/proc/${args.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}

function isRunning() {
  try {
    process.kill(Number(args.pid), 0);
    return true;
  } catch {
    return false;
  }
}

/** Makes the peak what is in memory now, where the system lets us. */
function resetPeak() {
  try {
    writeFileSync(`/proc/${args.pid}/clear_refs`, "5");
  } catch {
    console.error("the peak of memory cannot be reset: it is that of all cases so far");
  }
}

function peakMiB() {
  const found = /VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${args.pid}/status`, "utf8"));
  return Math.round(Number(found?.[1] ?? 0) / 1024);
}

/** The delays of the server's event loop since they were read last, ms. They hold the 10 ms at which it looks. */
async function readLoop() {
  const text = await client.metrics();
  const read = (name) =>
    Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, "m").exec(text)?.[1]) * 1000;
  return { p99: read("p99"), max: read("max") };
}

function sleep(forMs) {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
