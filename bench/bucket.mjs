// What a bucket costs queries beside a folder: pushes the kit's lines to a server over each, waits until the day is merged, and runs the kit's
// queries over both, with an empty cache and again. Ends with status 1 when an answer differs.
//
//   node bench/bucket.mjs KIT DIR [--mb 1000] [--delays 0,20] [--warm 5] [--rounds 2] [--only id,id]
//
//   KIT       the benchmark kit: its queries are asked
//   DIR       bodies.pb and manifest.json of the kit, of a day that is over
//   --delays  each answer of the bucket takes at least so many ms, in turn
//   --warm    runs after the cold one; the least counts, as other work on the machine only adds to it
//   --rounds  processes for each query and place, by turns; here too the least counts
//
// Cold: nothing of the data was asked for before, and the cache of the bucket is empty; the folder's files are in the memory of the system. Each query has
// a process of its own, which has answered it for another tenant with less data: what starting costs is not counted. Last figures: docs/decisions/010-segments-in-a-bucket.md.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { filesBelow, makeFolder, startServer } from "../packages/test/dist/testing/server.js";
import { openBucket } from "./store/bucket.mjs";
import { runComparison } from "./store/comparison.mjs";
import { fillFlags, pushBodies, settle } from "./store/fill.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mb: { type: "string", default: "1000" },
    delays: { type: "string", default: "0,20" },
    warm: { type: "string", default: "5" },
    rounds: { type: "string", default: "2" },
    only: { type: "string", default: "" },
  },
});
const [kit, data] = positionals;
if (data === undefined) throw new Error("name the kit and its data: bench/bucket.mjs KIT DIR");
const manifest = JSON.parse(readFileSync(join(data, "manifest.json"), "utf8"));
const stepSeconds = 300;
const fromSeconds = Math.floor(manifest.startSec / stepSeconds) * stepSeconds;
const toSeconds = Math.ceil((manifest.endSec + 1) / stepSeconds) * stepSeconds;
const words = {
  NEEDLE: manifest.needles[0].token,
  NEEDLE_APP: manifest.needles[0].app,
  TRACE: manifest.traceNeedle.trace_id,
  RARE: manifest.rareText,
  RANGE: `${toSeconds - fromSeconds}s`,
};
const wanted = options.only.split(",").filter((id) => id !== "");
const { queries } = JSON.parse(readFileSync(join(kit, "queries.json"), "utf8"));
const flags = [...fillFlags, "-auth.enabled=true"];
const [main, other] = ["main", "other"];
const otherMb = 30;

await runComparison(compare);

async function compare(found) {
  const bucket = await openBucket();
  const places = [{ name: "folder", folder: makeFolder(), own: [], delayMs: 0 }];
  const [{ folder }] = places;
  await fill(folder, [], async () => filesBelow(join(folder, "chunks"), ""));
  const cached = makeFolder();
  await fill(cached, bucket.flags, bucket.keys);
  for (const delayMs of options.delays.split(",").map(Number))
    places.push({ name: `${delayMs} ms`, folder: cached, own: bucket.flags, delayMs });
  const ratios = new Map();
  for (const query of queries.filter(({ id }) => wanted.length === 0 || wanted.includes(id))) {
    const [local, ...far] = await measureAll(query, places, bucket);
    const row = { "folder cold": local.coldMs, warm: local.warmMs, CPU: local.warmCpuMs };
    for (const [i, { name }] of places.slice(1).entries()) {
      const { coldMs, warmMs, warmCpuMs, gets, mb, answer } = far[i];
      if (answer !== local.answer) {
        found.differences++;
        console.log(`${query.id}: another answer over a bucket`);
      }
      Object.assign(row, { [`${name} cold`]: coldMs, [`${name} warm`]: warmMs });
      Object.assign(row, { [`${name} CPU`]: warmCpuMs, GETs: gets, MB: mb });
      note(ratios, `${name}, cold`, coldMs / local.coldMs);
      note(ratios, `${name}, warm`, warmMs / local.warmMs);
      note(ratios, `${name}, warm, processor time`, (1 + warmCpuMs) / (1 + local.warmCpuMs));
    }
    found.table[query.id] = row;
    console.log(query.id, JSON.stringify(row));
  }
  for (const [name, list] of ratios) console.log(`${name}: ${summary(list)}`);
  bucket.close();
}

/** What a query takes at each place: the least of several rounds, by turns. */
async function measureAll(query, places, bucket) {
  const found = places.map(() => []);
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [i, place] of places.entries()) found[i].push(await measure(query, place, bucket));
  }
  return found.map((some) => {
    const least = (name) => Math.min(...some.map((one) => one[name]));
    const times = { coldMs: least("coldMs"), warmMs: least("warmMs") };
    return { ...some[0], ...times, warmCpuMs: least("warmCpuMs") };
  });
}

function note(ratios, name, ratio) {
  ratios.set(name, [...(ratios.get(name) ?? []), ratio]);
}

function summary(list) {
  const mean = Math.exp(list.reduce((sum, ratio) => sum + Math.log(ratio), 0) / list.length);
  const [most] = list.toSorted((a, b) => b - a);
  return `${mean.toFixed(2)} times the folder (geometric mean), at most ${most.toFixed(2)}`;
}

/** Fills a store; what the ingester has of its own goes, so that only the store is read. */
async function fill(folder, own, keys) {
  const server = await startServer(folder, [...flags, ...own]);
  const bodies = join(data, "bodies.pb");
  await pushBodies(server.url, bodies, otherMb, other);
  const { rawBytes } = await pushBodies(server.url, bodies, Number(options.mb), main);
  const segments = await settle(server.url, keys);
  console.log(`${Math.round(rawBytes / 1e6)} MB of lines, merged into ${segments.length} segments`);
  await server.kill("SIGTERM");
  for (const dir of ["ingester", "wal"]) rmSync(join(folder, dir), { recursive: true });
}

/** Times of a query in a process of its own: the first one, and the least of those after it. */
async function measure(query, { folder, own, delayMs }, bucket) {
  rmSync(join(folder, "segment-cache"), { recursive: true, force: true });
  const server = await startServer(folder, [...flags, "-compactor.compaction-interval=1h", ...own]);
  const path = `/loki/api/v1/${pathOf(query)}`;
  for (let run = 0; run < 3; run++) await ask(server.url + path, other);
  await bucket.delay(delayMs);
  const before = await bucket.reads();
  const cold = await ask(server.url + path, main);
  const after = await bucket.reads();
  const warm = [];
  const beforeMs = cpuMs(server.process.pid);
  for (let run = 0; run < Number(options.warm); run++)
    warm.push((await ask(server.url + path, main)).ms);
  const warmCpuMs = (cpuMs(server.process.pid) - beforeMs) / warm.length;
  await bucket.delay(0);
  await server.kill("SIGTERM");
  return {
    coldMs: round(cold.ms),
    warmMs: round(Math.min(...warm)),
    warmCpuMs: round(warmCpuMs),
    gets: after.count - before.count,
    mb: round((after.bytes - before.bytes) / 1e6),
    answer: withoutStats(cold.text),
  };
}

async function ask(url, tenant) {
  const began = performance.now();
  const reply = await fetch(url, { headers: { "x-scope-orgid": tenant } });
  const text = await reply.text();
  const ms = performance.now() - began;
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${text}`);
  return { ms, text };
}

function pathOf({ kind, query, label, limit, step, direction, window }) {
  const end = window === "last5m" ? manifest.endSec + 1 : toSeconds;
  const start = window === "last5m" ? end - stepSeconds : fromSeconds;
  const text = query?.replace(/\$\{(\w+)\}/g, (_, word) => words[word]);
  const times = { start: `${start}000000000`, end: `${end}000000000` };
  const [path, params] = {
    range: ["query_range", { query: text, ...times, limit, step, direction }],
    instant: ["query", { query: text, time: times.end, limit }],
    labels: ["labels", times],
    label_values: [`label/${label}/values`, times],
    series: ["series", { "match[]": text, ...times }],
    stats: ["index/stats", { query: text, ...times }],
    volume: ["index/volume", { query: text, ...times }],
  }[kind];
  const given = Object.entries(params).filter(([, value]) => value !== undefined);
  return `${path}?${new URLSearchParams(given)}`;
}

/** What an answer says, in one order. */
function withoutStats(text) {
  const { data, ...rest } = JSON.parse(text);
  const { chunks: _, ...counts } = rest;
  const found = data?.result ?? data ?? [];
  return JSON.stringify([counts, found.map((one) => JSON.stringify(one)).sort()]);
}

/** Processor time of a process so far; 0 where the system does not tell. */
function cpuMs(pid) {
  if (!existsSync("/proc")) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return 10 * (Number(user) + Number(system));
}

function round(number) {
  return Math.round(number * 10) / 10;
}
