/**
 * What the metric engine costs besides reading and stages: ns per row of a scan, and ms of merging and evaluating.
 *
 *   node packages/logql/bench/metric.mjs
 *
 * Node 24, 2 cores: counts by stream labels 0.3 ns a row from headers, 2-3 where runs cross edges, 29 with a window a
 * second; merging 8 partials of 100 series x 60 points 3 ms, 1 h windows at 3600 points 110 ms.
 */
import {
  combineMetricPartials,
  evaluate,
  mergeMetricPartials,
  parseQuery,
  planQuery,
  startMetricScan,
} from "../dist/index.js";

const second = 1_000_000_000n;
const t0 = 1_700_006_400n * second;
const rowsPerBlock = 16_384;

/** Blocks of one hour, each of a few streams, rows of a run in order of time. */
function makeBlocks(count, streams, level) {
  const table = Array.from({ length: streams }, (_, i) => ({
    names: ["app", "pod"],
    values: [`app-${i % 7}`, `pod-${i}`],
  }));
  const lines = new Uint8Array(rowsPerBlock * 100 + 64);
  const blocks = Array.from({ length: count }, (_, number) => {
    const runs = 4;
    const per = rowsPerBlock / runs;
    const times = new Float64Array(rowsPerBlock);
    for (let row = 0; row < rowsPerBlock; row++)
      times[row] = ((row % per) + 1) * (3.6e12 / per) - 1;
    const offsets = Uint32Array.from({ length: rowsPerBlock + 1 }, (_, row) => row * 100);
    const codes = Uint8Array.from({ length: rowsPerBlock }, (_, row) => (row * 7919) % 5);
    const dictionary = ["", "info", "error", "warn", "debug"];
    const metadata = level ? { kind: "dictionary", dictionary, codes } : undefined;
    return {
      baseNs: t0,
      rowCount: rowsPerBlock,
      runs: {
        count: runs,
        stream: Uint32Array.from({ length: runs }, (_, r) => (number * runs + r) % streams),
        rowStart: Uint32Array.from({ length: runs + 1 }, (_, r) => r * per),
        minTime: new Float64Array(runs).fill(times[0]),
        maxTime: new Float64Array(runs).fill(times[per - 1]),
        lineBytes: new Float64Array(runs).fill(per * 100),
      },
      timestamps: () => times,
      lines: () => ({ bytes: lines, offsets }),
      metadataNames: () => (level ? ["level"] : []),
      metadata: (name) => (name === "level" ? metadata : undefined),
    };
  });
  return { blocks, streamLabels: (stream) => table[stream] };
}

function leafOf(query, stepSeconds, points) {
  const endNs = t0 + 3600n * second;
  const startNs = endNs - BigInt(stepSeconds * (points - 1)) * second;
  const stepNs = points === 1 ? 0n : BigInt(stepSeconds) * second;
  return planQuery(parseQuery(query), {
    startNs,
    endNs,
    stepNs,
    limit: 1,
    direction: "backward",
    intervalNs: 0n,
  });
}

function scan(plan, { blocks, streamLabels }) {
  const scanning = startMetricScan(plan.leaves[0]);
  const runs = Uint32Array.of(0, 1, 2, 3);
  for (const block of blocks) scanning.addBlock(block, streamLabels, { runs });
  return scanning.finish();
}

function best(times, run) {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < times; i++) {
    const start = process.hrtime.bigint();
    run();
    least = Math.min(least, Number(process.hrtime.bigint() - start));
  }
  return least;
}

const plain = makeBlocks(64, 100, false);
const levelled = makeBlocks(64, 100, true);
const rows = 64 * rowsPerBlock;
console.log(`scan of ${rows} rows, ns per row`);
const scans = [
  ["count by app, one window", 'sum by (app) (count_over_time({a="b"}[1h]))', 60, 1, plain],
  ["rate by app, 60 steps of 1m", 'sum by (app) (rate({a="b"}[1m]))', 60, 60, plain],
  ["rate by app, 5m every 1m", 'sum by (app) (rate({a="b"}[5m]))', 60, 60, plain],
  ["rate by pod, 90s every 1m", 'sum by (pod) (rate({a="b"}[90s]))', 60, 60, plain],
  ["count by app, 3600 steps", 'sum by (app) (count_over_time({a="b"}[1s]))', 1, 3600, plain],
  ["bytes by app, 60 steps", 'sum by (app) (bytes_over_time({a="b"}[1m]))', 60, 60, plain],
  ["count by level (metadata)", 'sum by (level) (count_over_time({a="b"}[1m]))', 60, 60, levelled],
];
for (const [name, query, step, points, data] of scans) {
  const plan = leafOf(query, step, points);
  const ns = best(5, () => scan(plan, data));
  console.log(`${name.padEnd(36)} ${(ns / rows).toFixed(2)}`);
}

console.log("\nmerge of partials and evaluation, ms");
const merges = [
  ["rate by pod: 100 series x 60 points, 8 parts", 'sum by (pod) (rate({a="b"}[5m]))', 60, 60],
  [
    "count by pod: 1h windows x 3600 points",
    'sum by (pod) (count_over_time({a="b"}[1h]))',
    1,
    3600,
  ],
  ["topk(5) of 100 x 3600", 'topk(5, sum by (pod) (count_over_time({a="b"}[1m])))', 1, 3600],
];
for (const [name, query, step, points] of merges) {
  const plan = leafOf(query, step, points);
  const parts = Array.from({ length: 8 }, (_, i) =>
    scan(plan, { ...plain, blocks: plain.blocks.slice(i * 8, i * 8 + 8) }),
  );
  const ns = best(3, () => {
    const [leaf] = plan.leaves;
    evaluate(plan, new Map([[0, mergeMetricPartials(leaf, [combineMetricPartials(leaf, parts)])]]));
  });
  console.log(`${name.padEnd(48)} ${(ns / 1e6).toFixed(1)}`);
}
