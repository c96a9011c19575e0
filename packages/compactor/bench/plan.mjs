// What so many GB a day cost: objects, calls of the store, memory and dollars, by the compactor's own plan and the code of the day index.
//
//   node packages/compactor/bench/plan.mjs [--gb 1,10,100,1000,10000] [--streams-per-gb 100] [--tenants 1] [--days 30] [--queries 2000]
//                                          [--merges 1] [--index 1000000]
//
//   --gb              lines a day, GB, a row each
//   --streams-per-gb  streams of a day for each of them, 200 at least
//   --tenants         that share lines and streams
//   --days            that rows are kept
//   --queries         of each tenant a day, each of which lists its day and reads some ranges that no cache has
//   --merges          that run at a time (compactor.max_compaction_parallelism)
//   --index           streams of a tenant's day whose index is built and asked, 0: none
//
// Below 500 GB a day one process, without copies; beyond that three copies and an ingester for each 860 GB. Last figures: docs/operations.md.
import { parseArgs } from "node:util";
import { atRest, simulateDay } from "./plan/day.mjs";
import { measureIndex } from "./plan/index-cost.mjs";

const { values: options } = parseArgs({
  options: {
    gb: { type: "string", default: "1,10,100,1000,10000" },
    "streams-per-gb": { type: "string", default: "100" },
    tenants: { type: "string", default: "1" },
    days: { type: "string", default: "30" },
    queries: { type: "string", default: "2000" },
    merges: { type: "string", default: "1" },
    index: { type: "string", default: "1000000" },
  },
});
const tenants = Number(options.tenants);
const days = Number(options.days);
const queries = Number(options.queries);
/** S3 in us-east-1, dollars: a GB and month in the first tier, a call that puts or lists, one that gets. */
const price = { gbMonth: 0.023, put: 0.005 / 1000, get: 0.0004 / 1000 };
const daysAMonth = 30;
/** By `packages/storage/bench/compact.mjs`, at the level of merges. */
const mergedBytesACpuMs = 40e3;
const GiB = 2 ** 30;
/** Runs of the compactor, and days of a tenant that it lists in each: older ones four times a day. */
const runs = { aDay: 144, recentDays: 7, quietADay: 4 };
const listedAtOnce = 1000;
/** Ranges that a query gets which are in no cache yet. */
const getsOfAQuery = 5;

const perUnit = fitIndex();
console.table(options.gb.split(",").map((gb) => rowOf(Number(gb))));
if (Number(options.index) > 0) console.table(indexRows(Number(options.index)));

function rowOf(gb) {
  const isCluster = gb >= 500;
  const ingesters = isCluster ? Math.max(3, Math.ceil(gb / 860)) : 1;
  const copies = isCluster ? 3 : 1;
  const streams = Math.max(200, gb * Number(options["streams-per-gb"]));
  const lineBytes = (gb * 1e9) / tenants;
  const day = simulateDay({ lineBytes, ingesters, copies, mergesAtOnce: Number(options.merges) });
  const ofTenant = { streams: streams / tenants, segments: day.merged };
  const indexBytes = perUnit.bytes(ofTenant);
  const lists = listsADay(day);
  const puts = day.puts * tenants;
  const gets = (day.gets + queries * getsOfAQuery) * tenants;
  const storedGb = gb * atRest.merged * days;
  const storage = storedGb * price.gbMonth;
  const calls = daysAMonth * ((puts + lists) * price.put + gets * price.get);
  return {
    "GB a day": gb,
    streams,
    "copies x ingesters": `${copies} x ${ingesters}`,
    "segments sealed a day": day.sealed * tenants,
    "at most at once": day.most * tenants,
    merged: day.merged * tenants,
    "merged bytes / raw": +((day.mergedBytes * tenants) / (gb * 1e9)).toFixed(1),
    "PUT a day": puts,
    "LIST a day": Math.round(lists),
    "GET a day": gets,
    "day index MB": +((indexBytes * tenants) / 1e6).toFixed(2),
    "merge cores": coresOf((day.mergedBytes * tenants) / mergedBytesACpuMs),
    "indexes written": day.publishes * tenants,
    "index cores": coresOf(day.publishes * tenants * perUnit.nextMs(ofTenant)),
    "ingester GiB": +(1 + (streams * copies) / ingesters / 1e5).toFixed(1),
    "gateway GiB": +(0.25 + (2 * tenants * perUnit.memory(ofTenant)) / GiB).toFixed(2),
    "bucket TB": +(storedGb / 1000).toFixed(2),
    "$ a month": +(storage + calls).toFixed(2),
    "of it calls": +calls.toFixed(2),
  };
}

/** Cores that are busy all day with so much processor time, ms. */
function coresOf(cpuMs) {
  return +(cpuMs / 86_400_000).toFixed(2);
}

/** Pages of listings: of tenants, of their days by the compactor, and of today by those who ask. */
function listsADay(day) {
  const pages = Math.max(1, Math.ceil(day.most / listedAtOnce));
  const settledPages = Math.max(1, Math.ceil(day.merged / listedAtOnce));
  const found = runs.aDay * (1 + tenants);
  const recent = runs.aDay * tenants * (pages + runs.recentDays * settledPages);
  const quiet = runs.quietADay * tenants * Math.max(0, days - runs.recentDays) * settledPages;
  // A listing serves queries for 5 s.
  const asked = tenants * Math.min(queries, 17_280) * pages;
  return found + recent + quiet + asked;
}

/** Bytes, memory and time by stream and by stream of a segment, from two indexes of another shape. */
function fitIndex() {
  // The first one pays for the compiler.
  measureIndex({ streams: 20_000, segments: 50, held: 4 });
  const one = measureIndex({ streams: 20_000, segments: 50, held: 1 });
  const many = measureIndex({ streams: 20_000, segments: 50, held: 11 });
  const split = (of) => {
    const perPlace = (of(many) - of(one)) / (20_000 * 10);
    const perStream = of(one) / 20_000 - perPlace;
    // A stream's lines of an hour or two are in a few segments, and a pod lives for as long.
    return ({ streams, segments }) => streams * (perStream + perPlace * Math.min(segments, 4));
  };
  return {
    bytes: split(({ sizeBytes }) => sizeBytes),
    memory: split(({ memoryBytes }) => memoryBytes),
    nextMs: split(({ nextMs }) => nextMs),
  };
}

function indexRows(streams) {
  const shapes = [
    { streams: streams / 10, segments: 100, held: 1 },
    { streams, segments: 100, held: 1 },
    { streams, segments: 100, held: 2 },
  ];
  return shapes.map((shape) => {
    const { buildMs, nextMs, sizeBytes, openMs, memoryBytes, podMs, appMs, regexMs } =
      measureIndex(shape);
    return {
      streams: shape.streams,
      "segments, of each stream": `${shape.segments}, ${shape.held}`,
      "build s": +(buildMs / 1000).toFixed(2),
      "next generation s": +(nextMs / 1000).toFixed(2),
      MB: +(sizeBytes / 1e6).toFixed(1),
      "bytes a stream": +(sizeBytes / shape.streams).toFixed(1),
      "open ms": Math.round(openMs),
      "memory MB": +(memoryBytes / 1e6).toFixed(1),
      'pod="..." ms': +podMs.toFixed(2),
      'app="..." ms': +appMs.toFixed(1),
      'pod=~"..." ms': +regexMs.toFixed(1),
    };
  });
}
