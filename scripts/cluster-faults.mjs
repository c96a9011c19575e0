// `node scripts/cluster-faults.mjs [--only text] [--ms 15000] [--other checkout]`: breaks a cluster under a load of numbered
// lines, one fault at a time, and prints how pushes, queries and lines fared. Beside it `skald canary` asks for short ranges
// of lines of its own; answers of these that are wrong count, too. Fails when a line was lost or shown twice, a query was wrong
// without a warning, or a service counted the failure of another one as a fault of the program.
import { parseArgs } from "node:util";
import { Cluster } from "../packages/test/dist/testing/cluster.js";
import { NumberedLines } from "../packages/test/dist/testing/numbered-lines.js";
import { binSkald, runProgram } from "../packages/test/dist/testing/server.js";
import { faultRows, otherBuild, usualPlan } from "./cluster/fault-rows.mjs";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    /** How long a fault lasts, ms. With --long, faults that matter only when they last have their own time. */
    ms: { type: "string", default: "15000" },
    long: { type: "boolean", default: false },
    /** The pause between two pushes, and between two queries, ms. */
    pause: { type: "string", default: "25" },
    /** A built checkout of another version. */
    other: { type: "string" },
    /** Prints each failure. */
    verbose: { type: "boolean", default: false },
  },
});
const pauseMs = Number(values.pause);
/** A cluster that is not well this long after a fault has not recovered. */
const maxRecoveryMs = 120_000;
/** Longer gaps than this are reported. */
const slowMs = 1500;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const usualNames = [
  ...["ingester-1", "ingester-2", "ingester-3", "distributor-1", "distributor-2"],
  ...["index-gateway", "querier-1", "querier-2", "query-scheduler", "query-frontend"],
  ...["compactor", "ruler"],
];

const chosen = faultRows
  .filter(({ name }) => values.only.split(",").some((one) => name.includes(one)))
  .filter(({ needs }) => needs === undefined || values[needs] !== undefined);
let current;
let isBad = false;
let rows = 0;
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => void current?.cluster.stop().then(() => process.exit(1)));

console.log(
  `| ${"fault".padEnd(58)} | pushes   | failed | longest | none for | queries | failed | wrong | longest | none for | well after | lost | twice | faults |`,
);
console.log(`| ${"-".repeat(58)} |${" ---: |".repeat(13)}`);
try {
  for (const row of chosen) {
    const plan = planOf(row);
    if (current !== undefined && current.key !== JSON.stringify(plan)) await end();
    current ??= { key: JSON.stringify(plan), cluster: await Cluster.start(plan) };
    const result = await runRow(row, current.cluster);
    print(row.name, result);
    const { lost, twice, wrong, faults } = result;
    if (lost + twice + wrong + faults > 0 || !result.isWell) isBad = true;
    if (row.spoils || !result.isWell) await end();
  }
} finally {
  await end();
}
process.exit(isBad ? 1 : 0);

function planOf({ plan, needs }) {
  if (plan !== undefined) return plan;
  if (needs !== "other") return usualPlan;
  return { builds: Object.fromEntries(otherBuild.map((name) => [name, values.other])) };
}

async function end() {
  const ended = current;
  current = undefined;
  await ended?.cluster.stop();
}

async function runRow(row, cluster) {
  const pushes = newSeries();
  const queries = newSeries();
  let told;
  const tell = (what) => {
    if (!values.verbose || what === told) return;
    told = what;
    console.log(`  ${new Date().toISOString()} ${what}`);
  };
  const lines = new NumberedLines(cluster.gateway, {
    pauseMs,
    tenant: `numbered-${++rows}`,
    onPush: (ms, failure) => {
      note(pushes, ms, failure === undefined);
      if (failure !== undefined) tell(`push: ${failure} after ${Math.round(ms / 1000)} s`);
    },
    onFailedQuery: (failure) => tell(`query: ${failure}`),
  });
  let isOver = false;
  let rightMs = 0;
  const look = async () => {
    const begun = performance.now();
    const sight = await lines.count().catch((error) => void tell(`query: ${error}`));
    const ms = performance.now() - begun;
    note(queries, ms, sight !== undefined);
    if (ms > slowMs) tell(`a query took ${Math.round(ms)} ms`);
    if (sight === undefined) return false;
    if (sight.seen >= sight.least && sight.seen <= sight.most) {
      rightMs = performance.now();
      return true;
    }
    queries.wrong++;
    tell(`wrong: ${JSON.stringify(sight)}`);
    return false;
  };
  const endCanary = runCanary(cluster.gateway, tell);
  lines.start();
  await lines.more(400);
  // The first queries load the modules that queries need.
  for (let tries = 0, right = 0; right < 5 && tries < 100; tries++) {
    if (await look()) right++;
    await sleep(pauseMs);
  }
  Object.assign(pushes, newSeries());
  Object.assign(queries, newSeries());
  const looking = (async () => {
    while (!isOver) {
      await look();
      await sleep(pauseMs * 4);
    }
  })();
  const names = usualNames;
  const ms = values.long && row.longMs !== undefined ? row.longMs : Number(values.ms);
  const flush = () => postFlush(cluster.gateway);
  tell("now");
  await row.run({ cluster, lines, names, ms, flush, wait: sleep });
  tell("over");
  const overMs = performance.now();
  // The cluster is well after a push and a query that both began after the end of the fault.
  const isWell = await Promise.race([
    (async () => {
      await lines.more(400);
      while (rightMs < overMs) await sleep(20);
      return true;
    })(),
    sleep(maxRecoveryMs).then(() => false),
  ]);
  const wellMs = performance.now() - overMs;
  isOver = true;
  await looking;
  await lines.stop();
  queries.wrong += await endCanary();
  const found = await cluster.faults();
  for (const fault of found) tell(`fault: ${fault}`);
  const faults = found.length;
  const { wrong } = queries;
  return { pushes, queries, wrong, wellMs, isWell, faults, ...(await judge(lines, tell)) };
}

/** Starts `skald canary`; the result ends it, and resolves with the number of answers that were wrong. */
function runCanary(gateway, tell) {
  const end = new AbortController();
  const settings = [`-tenant-id=canary-${rows}`, "-interval=200ms", "-port=0", "-json"];
  const ended = runProgram(binSkald, ["canary", gateway, ...settings], { end: end.signal });
  return async () => {
    end.abort();
    const { stderr } = await ended;
    const wrong = stderr.split("\n").filter((line) => /(doubled|missing|unexpected)/.test(line));
    for (const line of wrong) tell(`canary: ${line}`);
    return wrong.length;
  };
}

async function postFlush(gateway) {
  const answer = await fetch(`${gateway}/flush`, { method: "POST" });
  await answer.arrayBuffer();
}

/** Counts the lines that are missing or double at the end, by log queries. */
async function judge(lines, tell) {
  for (let tries = 0; ; tries++) {
    try {
      const numbers = await lines.numbers();
      const seen = new Set(numbers);
      let lost = 0;
      for (let line = 0; line < lines.acknowledged; line++) if (!seen.has(line)) lost++;
      return { lost, twice: numbers.length - seen.size };
    } catch (error) {
      tell(`log query: ${error}`);
      if (tries > 50) throw error;
      await sleep(500);
    }
  }
}

function newSeries() {
  const nowMs = performance.now();
  return { ok: 0, failed: 0, wrong: 0, longestMs: 0, gapMs: 0, lastMs: nowMs };
}

function note(series, ms, isOk) {
  series.longestMs = Math.max(series.longestMs, ms);
  if (!isOk) {
    series.failed++;
    return;
  }
  series.ok++;
  const nowMs = performance.now();
  series.gapMs = Math.max(series.gapMs, nowMs - series.lastMs);
  series.lastMs = nowMs;
}

function print(name, { pushes, queries, wrong, wellMs, isWell, lost, twice, faults }) {
  const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
  const cells = [
    ...[pushes.ok, pushes.failed, seconds(pushes.longestMs), seconds(pushes.gapMs)],
    ...[queries.ok, queries.failed, wrong, seconds(queries.longestMs), seconds(queries.gapMs)],
    ...[isWell ? seconds(wellMs) : "never", lost, twice, faults],
  ];
  console.log(`| ${name.padEnd(58)} | ${cells.join(" | ")} |`);
}
