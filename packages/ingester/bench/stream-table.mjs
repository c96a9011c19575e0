// What the table of streams takes per stream, and how long it stops the thread: a million streams of six labels.
//
//   node --expose-gc packages/ingester/bench/stream-table.mjs [streams]

import { formatLabels, makeLabels } from "@skald/model";
import { NumberedStreams } from "../dist/tenant/numbered-streams.js";

const streamCount = Number(process.argv[2] ?? 1_000_000);
const perPush = 4000;

function labelsOf(i) {
  const app = i % 200;
  const id = (Math.imul(i, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0");
  return makeLabels([
    ["app", `app-${app}`],
    ["cluster", "main"],
    ["container", `c${app % 3}`],
    ["namespace", `ns-${app % 30}`],
    ["node", `node-${i % 250}`],
    ["pod", `app-${app}-${id}-${i}`],
  ]);
}

const bytesNow = () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

/** Processor time, of which other processes take nothing away. */
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

const before = bytesNow();
const table = new NumberedStreams();
let longestMs = 0;
for (let from = 0; from < streamCount; from += perPush) {
  const sets = Array.from({ length: perPush }, (_, i) => labelsOf(from + i));
  const texts = sets.map((labels) => Buffer.from(formatLabels(labels)).toString());
  const started = cpuMs();
  for (let i = 0; i < perPush; i++) table.add(texts[i], sets[i], 0, 1e6);
  longestMs = Math.max(longestMs, cpuMs() - started);
}
const bytes = bytesNow() - before;

function time(work) {
  const started = cpuMs();
  const result = work();
  return `${(cpuMs() - started).toFixed(1)} ms (${result})`;
}

const matchers = [
  { name: "cluster", op: "=", value: "main" },
  { name: "namespace", op: "=", value: "ns-1" },
];
const [pod] = labelsOf(1).values.slice(-1);
console.log("| | |\n| --- | --- |");
console.log(`| bytes a stream | ${(bytes / table.size).toFixed(0)} |`);
console.log(`| longest stop for ${perPush} new streams | ${longestMs.toFixed(1)} ms |`);
console.log(`| streams of a namespace | ${time(() => table.match(matchers).length)} |`);
console.log(
  `| streams of a pod | ${time(() => table.match([...matchers, { name: "pod", op: "=", value: pod }]).length)} |`,
);
console.log(
  `| all but a namespace | ${time(() => table.match([{ ...matchers[1], op: "!=" }]).length)} |`,
);
console.log(`| removal | ${time(() => table.removeIdle(1, () => false))} |`);
