// How fast patterns are learnt: lines of each sample, warm, in lines per second of one thread.
import { fieldNeedles, Miner, messageOf } from "@skald/patterns";
import { linesOf, samples } from "../dist/testing/formats.js";

const count = 20_000;
const fields = fieldNeedles(["log", "message", "msg"]);
const table = {};
for (const sample of samples) {
  const lines = linesOf(sample, count, 1).map(([, line]) => Buffer.from(line));
  const miner = new Miner({ maxClusters: 300, maxEvictionRatio: 0.25 });
  const learn = () => {
    for (const line of lines) miner.learn(line, messageOf(line, fields));
  };
  learn();
  const start = performance.now();
  for (let i = 0; i < 5; i++) learn();
  const seconds = (performance.now() - start) / 1000;
  const bytes = lines.reduce((sum, { length }) => sum + length, 0);
  table[sample.name] = {
    "k lines/s": Math.round((5 * count) / seconds / 1000),
    "MB/s": Math.round((5 * bytes) / seconds / 1e6),
    patterns: miner.clusters.size,
  };
}
console.table(table);
