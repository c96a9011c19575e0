import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { mutateQuery } from "../testing/mutate.js";
import { parseErrorDetail } from "./errors.js";
import { parseQuery } from "./parser.js";
import { formatQuery, printQuery } from "./print.js";

const corpus = JSON.parse(
  readFileSync(new URL("../../testdata/accepted-queries.json", import.meta.url), "utf8"),
) as string[];

describe("queries in use", () => {
  it.each(corpus)("%s", (text) => {
    const expr = parseQuery(text);
    expect(parseQuery(printQuery(expr))).toEqual(expr);
    expect(parseQuery(formatQuery(expr))).toEqual(expr);
  });
});

describe("mutated queries", () => {
  it("give a tree that prints, or an error with a position", () => {
    const random = seededRandom(testSeed());
    const runs = testRuns(10_000);
    let accepted = 0;
    for (let i = 0; i < runs; i++) {
      const text = mutateQuery(random, corpus);
      try {
        const printed = printQuery(parseQuery(text));
        accepted++;
        if (printQuery(parseQuery(printed)) !== printed) throw new Error("prints differently");
      } catch (error) {
        const offset = parseErrorDetail(error)?.position.offset ?? -1;
        if (offset >= 0 && offset <= text.length) continue;
        throw new Error(`query ${JSON.stringify(text)}`, { cause: error });
      }
    }
    expect(accepted).toBeGreaterThan(runs / 25);
  });
});
