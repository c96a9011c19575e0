import { expect, it } from "@jest/globals";
import { parseQuery } from "@skald/logql";
import { defaultLimits } from "@skald/runtime/config";
import { checkBlocked } from "./check-limits.js";

const rule = { pattern: "", regex: false, hash: 0, types: [], query_tags: "" };
const log = '{app="a"}';
const rate = 'rate({app="a"}[1m])';

it.each([
  ["its text", { pattern: log }, log, true],
  ["its text, with space around", { pattern: ` ${log}` }, `${log}\n`, true],
  ["another text", { pattern: `${log} ` }, rate, false],
  ["an expression found in it", { pattern: "app=.a", regex: true }, rate, true],
  ["an expression not found", { pattern: "^app", regex: true }, rate, false],
  ["an expression as a text", { pattern: ".*" }, rate, false],
  ["its type", { types: ["metric"] }, rate, true],
  ["another type", { types: ["filter", "limited"] }, rate, false],
  ["a log query with a filter", { types: ["filter"] }, `${log} |= "x"`, true],
  ["a log query without", { types: ["limited"] }, log, true],
  ["its text and another type", { pattern: log, types: ["metric"] }, log, false],
  ["its hash", { hash: 0x6a7b017e }, "vector(1)", true],
  ["another hash, whatever the text", { hash: 1, pattern: log }, log, false],
  ["a tag", { query_tags: "source=alerts" }, log, true],
  ["tags of which one is missing", { query_tags: "source=alerts,feature=x" }, log, false],
] as const)("a rule with %s", (_, given, text, isBlocked) => {
  const limits = {
    ...defaultLimits,
    blocked_queries: [{ ...rule, ...given, types: [...("types" in given ? given.types : [])] }],
  };
  const query = { text, expr: parseQuery(text), tags: "Source=alerts, User=7" };
  const check = () => checkBlocked(query, limits);
  if (isBlocked) expect(check).toThrow("query blocked by policy");
  else check();
});

it("without rules nothing is blocked", () => {
  checkBlocked({ text: log, expr: parseQuery(log), tags: "" }, defaultLimits);
});
