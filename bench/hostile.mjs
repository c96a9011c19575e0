// What one client can do to the others: `node bench/hostile.mjs [--rows G,B3] [--times 30] [--seconds 10] [--json FILE]`.
// Each row has a process of its own, started from the build with bench/hostile.yaml, and the data that it needs; a server that
// runs already is attacked with `--url U --pid P`, and `--keep` uses the data that an earlier run pushed to it. Tenant A attacks
// while `/ready`, a tiny query and a small push of tenant B are asked for at a fixed pace, from a thread of its own, so that
// what this program reads does not count. Prints a Markdown table; ends with 1 where a row misses an aim.
import { setMaxListeners } from "node:events";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { attacksOf } from "./hostile/attacks.mjs";
import { casesOf } from "./hostile/cases.mjs";
import { openClient } from "./hostile/client.mjs";
import { pushData } from "./hostile/data.mjs";
import { startProbes } from "./hostile/probes.mjs";
import { attach, longestStretchMs, sleep, start } from "./hostile/process.mjs";

/** Delays hold on a machine with nothing else to do; the others anywhere. */
const aims = { readyP99Ms: 50, tinyTimesIdle: 10, stretchMs: 50, peakMiB: 1536, keptMiB: 384 };
/** A case that takes longer is given up. */
const caseTimeoutMs = 180_000;
/** Time in which memory is given back. */
const settleMs = 60_000;
const settlePeriodMs = 2000;
const idleMs = 5000;

const { values: args } = parseArgs({
  options: {
    url: { type: "string" },
    pid: { type: "string" },
    rows: { type: "string" },
    times: { type: "string" },
    seconds: { type: "string", default: "10" },
    keep: { type: "boolean", default: false },
    soak: { type: "string" },
    json: { type: "string" },
  },
});
if ((args.url === undefined) !== (args.pid === undefined)) {
  console.error(
    "usage: node bench/hostile.mjs [--url URL --pid PID [--keep]] [--rows G,B3] [--times 30] [--seconds 10] [--soak MINUTES] [--json FILE]",
  );
  process.exit(2);
}

const rows = [];
let idle;
const names = await namesOfRows();
for (const name of args.soak === undefined ? names : ["soak"]) {
  const row = await runRow(name);
  rows.push(row);
  print(row);
  if (row.gone && args.url !== undefined) break;
}
console.log(`\n${tableOf([idle, ...rows])}`);
if (args.json !== undefined) writeFileSync(args.json, JSON.stringify(rows, undefined, 1));
process.exit(rows.some(({ misses }) => misses !== "") ? 1 : 0);

function allOf(client) {
  return [...attacksOf(client), ...casesOf(client)];
}

async function namesOfRows() {
  const names = allOf({}).map(({ name }) => name);
  const wanted = args.rows?.split(",") ?? names;
  // G stands for all of G1 to G13b, G5 for G5a and G5b.
  const isMeant = (name, text) =>
    text === name[0] || (name.startsWith(text) && !/^\d/.test(name.slice(text.length)));
  const found = names.filter((name) => wanted.some((text) => isMeant(name, text)));
  if (found.length === 0)
    throw new Error(`no rows for ${args.rows}: there are ${names.join(", ")}`);
  return found;
}

async function runRow(name) {
  const server = args.url === undefined ? await start() : attach(args.url, args.pid);
  const client = await openClient(server.url);
  try {
    const each = name === "soak" ? soakOf(client) : allOf(client).find((one) => one.name === name);
    await pushData(client, new Set(each.needs), { keep: args.keep });
    // The first seconds of a process show how it warms up.
    const nothing = { name: "idle", what: "nothing", times: 0, run: () => sleep(idleMs) };
    await measure(server, client, nothing);
    if (idle === undefined) {
      idle = await measure(server, client, nothing);
      print(idle);
    }
    const row = await measure(server, client, { ...each, times: Number(args.times ?? each.times) });
    return { ...row, misses: missesOf(row) };
  } finally {
    client.close();
    await server.stop();
  }
}

/** All rows in turn, in one process. */
function soakOf(client) {
  const all = allOf(client).filter(({ name }) => names.includes(name));
  const untilMs = performance.now() + Number(args.soak) * 60_000;
  const run = async () => {
    for (let i = 0; performance.now() < untilMs; i++) {
      const one = all[i % all.length];
      const begun = one.run(one.times, signalAfter(Number(args.seconds) * 1000));
      const { counts } = summaryOf(await allOfBegun(begun));
      console.log(`${one.name.padEnd(5)} ${JSON.stringify(counts)}`);
    }
    return [];
  };
  const needs = all.flatMap((one) => one.needs);
  // The rules of G3 are evaluated each second until then.
  const end = () => Promise.all(all.map((one) => one.end?.()));
  return { name: "soak", what: `all rows for ${args.soak} minutes`, times: 1, needs, run, end };
}

/** A signal that each call of a case listens to. */
function signalAfter(ms) {
  const signal = AbortSignal.timeout(ms);
  setMaxListeners(0, signal);
  return signal;
}

async function measure(server, client, { name, what, times, run, isTimed, end }) {
  await server.calm();
  server.resetPeak();
  const before = {
    residentMiB: server.residentMiB(),
    stretches: await server.stretches(),
    main: server.mainThreadMs(),
  };
  const probes = startProbes(server.url, client.tenantB);
  const startMs = performance.now();
  // The first call of each probe is on its way before the case begins.
  await sleep(300);
  const ends = signalAfter(isTimed ? Number(args.seconds) * 1000 : caseTimeoutMs);
  const begun = run(times, ends);
  const own = name === "idle" ? (await begun, []) : await allOfBegun(begun);
  const tookMs = performance.now() - startMs;
  await end?.();
  await sleep(300);
  const felt = await probes.stop();
  const row = { name, what, times, own: summaryOf(own), tookMs, ...felt };
  if (!server.isRunning()) return { ...row, gone: true };
  const main = server.mainThreadMs();
  const mainCpuMs = main.cpu - before.main.cpu;
  const waitedMs = main.waited - before.main.waited;
  const stretchMs = longestStretchMs(before.stretches, await server.stretches());
  const peakMiB = server.peakMiB();
  const kept = name === "idle" ? {} : await settle(server, before.residentMiB);
  return { ...row, mainCpuMs, waitedMs, stretchMs, peakMiB, ...kept };
}

/** The answers of a case, whether it gives one promise for all or one for each. */
async function allOfBegun(begun) {
  return Array.isArray(begun) ? Promise.all(begun) : begun;
}

/** Waits until the memory is given back, a minute at most; resolves with what is left. */
async function settle(server, beforeMiB) {
  const startMs = performance.now();
  for (;;) {
    const keptMiB = server.residentMiB() - beforeMiB;
    const tookMs = performance.now() - startMs;
    if (keptMiB <= aims.keptMiB || tookMs >= settleMs)
      return { afterMiB: server.residentMiB(), keptMiB, settledMs: tookMs };
    await sleep(settlePeriodMs);
  }
}

/** Statuses with how often they came, the first text of those that are no success, and how long the calls took. */
function summaryOf(answers) {
  const counts = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  const error = answers.find(({ status }) => !(status >= 200 && status < 300))?.text;
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  const extra = answers.flatMap((answer) => answer.extra ?? [])[0];
  return { counts, error, p50: times[times.length >> 1], max: times.at(-1), extra };
}

function missesOf({ gone, ready, tiny, push, tail, stretchMs, peakMiB, keptMiB }) {
  if (gone) return "the process is gone";
  const found = [];
  if (ready.p99 > aims.readyP99Ms) found.push("ready");
  if (tiny.p99 > aims.tinyTimesIdle * idle.tiny.p99) found.push("tiny query");
  if (tiny.failed > 0) found.push("tiny queries fail");
  if (push.failed > 0) found.push("small pushes fail");
  if (tail.failed > 0) found.push("tails end");
  // It is the lower bound of what was counted.
  if (stretchMs >= aims.stretchMs) found.push("main thread");
  if (peakMiB > aims.peakMiB) found.push("peak");
  if (keptMiB > aims.keptMiB) found.push("kept");
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
    "tail",
    "main thread: ran, waited for a core",
    "stretch >",
    "peak MiB",
    "MiB after (s)",
    "missed",
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
    ...[row.ready, row.tiny, row.push, row.tail].map(
      (felt) =>
        `${ms(felt.p50)} / ${ms(felt.p99)} / ${ms(felt.max)}${felt.failed > 0 ? ` (${felt.failed} failed)` : ""}`,
    ),
    row.gone ? "" : mainThreadOf(row),
    row.stretchMs ?? "",
    row.peakMiB ?? "",
    row.afterMiB === undefined ? "" : `${row.afterMiB} (${Math.round(row.settledMs / 1000)})`,
    row.misses ?? "",
  ]);
  const title = `Delays in ms unless said otherwise; a machine of ${availableParallelism()} cores, clients included.`;
  return [title, "", head, head.map(() => "---"), ...lines]
    .map((line) => (Array.isArray(line) ? `| ${line.join(" | ")} |` : line))
    .join("\n");
}

/** What part of the time the main thread ran and, on a machine with other work to do, waited: that long others' delays are not its own. */
function mainThreadOf({ mainCpuMs, waitedMs, tookMs }) {
  const share = (ms) => `${Math.round((100 * ms) / tookMs)} %`;
  return `${share(mainCpuMs)}, ${share(waitedMs)}`;
}

function print(row) {
  const { name, own, tookMs, ready, tiny, push, tail, peakMiB, afterMiB, misses = "" } = row;
  const felt = [ready, tiny, push, tail]
    .map(({ p50, p99, max }) => `${ms(p50)}/${ms(p99)}/${ms(max)}`)
    .join("  ");
  const main = row.gone ? "" : `main ${mainThreadOf(row)}, stretch > ${row.stretchMs} ms`;
  console.log(
    `${name.padEnd(5)} ${JSON.stringify(own.counts)} ${ms(tookMs)} ms  ready, tiny, push, tail ${felt}  ${main}  ${peakMiB} MiB, then ${afterMiB ?? ""}  ${misses}`,
  );
  if (own.error !== undefined) console.log(`      ${own.error.slice(0, 200)}`);
}

function ms(value) {
  if (value === undefined) return "-";
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}
