// Random data and random queries against any two servers that speak the API:
// `node test/differential.mjs --a URL --b URL [--queries 2000] [--rows 3000] [--seed 1] [--tenant T] [--ties] [--no-push] [--examples 3]`.
// Prints how many answers differ by class, with the first examples of each. With `--no-push` they hold the data of an
// earlier run, which `--end` (ms since the epoch, printed by each run) dates.
import { parseArgs } from "node:util";
import { differenceClasses } from "../packages/test/dist/testing/differential/compare.js";
import { randomPushes } from "../packages/test/dist/testing/differential/data.js";
import {
  askAll,
  compareAll,
  pushAll,
} from "../packages/test/dist/testing/differential/differential.js";
import { randomQueries } from "../packages/test/dist/testing/differential/queries.js";

const { values: args } = parseArgs({
  options: {
    a: { type: "string" },
    b: { type: "string" },
    queries: { type: "string", default: "2000" },
    rows: { type: "string", default: "3000" },
    seed: { type: "string", default: "1" },
    tenant: { type: "string" },
    end: { type: "string" },
    examples: { type: "string", default: "3" },
    ties: { type: "boolean", default: false },
    "no-push": { type: "boolean", default: false },
  },
});
if (args.a === undefined || args.b === undefined) {
  console.error(
    "usage: node test/differential.mjs --a URL --b URL [--queries N] [--rows N] [--seed S] [--tenant T] [--no-push --end MS]",
  );
  process.exit(2);
}
const [a, b] = [args.a, args.b].map((url) => ({
  url,
  ...(args.tenant === undefined ? {} : { tenant: args.tenant }),
}));
const seed = Number(args.seed);
const endMs = Number(args.end ?? Date.now());
const spanMs = 30 * 3_600_000;
console.log(`seed ${seed}, end ${endMs}`);
if (!args["no-push"]) {
  const pushes = randomPushes({ seed, endMs, rowCount: Number(args.rows), hasTies: args.ties });
  for (const server of [a, b]) await pushAll(server, pushes);
}
const calls = randomQueries(seed, Number(args.queries), { endMs, spanMs });
const [left, right] = [await askAll(a, calls), await askAll(b, calls)];
const found = compareAll(calls, left, right);
const answered = left.filter(({ status }) => status === 200).length;
const differing = [...found.values()].reduce((sum, all) => sum + all.length, 0);
console.log(
  `${calls.length} calls, ${answered} with an answer, ${calls.length - differing} the same\n`,
);
console.log("| difference | calls |\n| --- | --- |");
for (const kind of differenceClasses)
  if (found.has(kind)) console.log(`| ${kind} | ${found.get(kind).length} |`);
for (const kind of differenceClasses) {
  for (const { call, a: x, b: y } of (found.get(kind) ?? []).slice(0, Number(args.examples))) {
    console.log(`\n${kind}: ${call.path}\n  ${JSON.stringify(call.params)}\n  a: ${x}\n  b: ${y}`);
  }
}
process.exit(differing > 0 ? 1 : 0);
