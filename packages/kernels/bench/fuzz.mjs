// Decodes mutated push bodies with both forms of the kernels. Usage: node bench/fuzz.mjs [--count 1000000] [--seed N]
// A failure names the seed of its body: run again with --count 1 --seed THAT.
import { parseArgs } from "node:util";
import { fuzzPushes } from "../dist/testing/fuzz.js";

const { values } = parseArgs({
  options: { count: { type: "string", default: "1000000" }, seed: { type: "string" } },
});
const count = Number(values.count);
const seed = Number(values.seed ?? Date.now() % 1_000_000_000);
const total = { accepted: 0, refused: 0 };
const chunk = 50_000;
const start = performance.now();
for (let done = 0; done < count; done += chunk) {
  const { accepted, refused } = fuzzPushes(Math.min(chunk, count - done), seed + done);
  total.accepted += accepted;
  total.refused += refused;
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  console.log(`seed ${seed}: ${total.accepted} accepted, ${total.refused} refused, ${seconds} s`);
}
