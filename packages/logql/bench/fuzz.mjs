/*
 * Parses a million mutated queries: `node packages/logql/bench/fuzz.mjs [count] [seed]`. Fails on a crash, on an error
 * without a position, on a tree that prints to something else, and on a query that takes longer than a second.
 */
import { readFileSync } from "node:fs";
import { seededRandom } from "@skald/testkit";
import { parseErrorDetail } from "../dist/syntax/errors.js";
import { parseQuery } from "../dist/syntax/parser.js";
import { printQuery } from "../dist/syntax/print.js";
import { mutateQuery } from "../dist/testing/mutate.js";

const count = Number(process.argv[2] ?? 1_000_000);
const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31);
const corpus = JSON.parse(
  readFileSync(new URL("../testdata/accepted-queries.json", import.meta.url), "utf8"),
);
const random = seededRandom(seed);
const began = performance.now();
let accepted = 0;
let slowestMs = 0;

for (let i = 0; i < count; i++) {
  const text = mutateQuery(random, corpus);
  const start = performance.now();
  const problem = problemOf(text);
  const tookMs = performance.now() - start;
  slowestMs = Math.max(slowestMs, tookMs);
  if (problem !== undefined || tookMs > 1000) {
    console.error(`seed ${seed}, query ${i}: ${problem ?? `took ${tookMs} ms`}`);
    console.error(JSON.stringify(text));
    process.exit(1);
  }
}

console.table({
  queries: count,
  seed,
  accepted,
  "us each": Math.round(((performance.now() - began) / count) * 1e4) / 10,
  "slowest ms": Math.round(slowestMs * 10) / 10,
});

function problemOf(text) {
  try {
    const printed = printQuery(parseQuery(text));
    accepted++;
    return printQuery(parseQuery(printed)) === printed ? undefined : `prints as ${printed}`;
  } catch (error) {
    const offset = parseErrorDetail(error)?.position.offset ?? -1;
    return offset >= 0 && offset <= text.length ? undefined : String(error?.stack);
  }
}
