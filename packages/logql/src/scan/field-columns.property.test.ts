import { expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { line, row } from "../pipeline/testing/arbitrary-rows.js";
import type { QueryParams } from "../plan/plan.js";
import { parseQuery } from "../syntax/parser.js";
import type { PlainRow } from "../testing/memory-block.js";
import { type Layout, runQuery } from "../testing/run-query.js";

const names = ["a", "b", "c", "app", "level", "a_b", "user", "_9x", "flag", "x"];
const name = fc.constantFrom(...names);
const value = fc.constantFrom("", "x", "error", "info", "10", "2.5", "5ms", "10KB", "a b", "ü");

const filter = fc.oneof(
  fc
    .tuple(name, fc.constantFrom("=", "!=", "=~", "!~"), value)
    .map(([label, op, text]) => `${label}${op}${JSON.stringify(text)}`),
  fc
    .tuple(name, fc.constantFrom(">", ">=", "<", "==", "!="), fc.constantFrom("2", "5ms", "1KB"))
    .map(([label, op, number]) => `${label} ${op} ${number}`),
  fc.constantFrom(
    'a=ip("10.0.0.0/8")',
    '__error__=""',
    '__error__!=""',
    'level="error" or a > 1',
    'a="x", b!="x"',
  ),
);
const stage = fc.oneof(
  { weight: 9, arbitrary: filter.map((text) => `| ${text}`) },
  fc.constantFrom('|= "a"', '!= "x"', '|~ "e.*r"'),
  { weight: 1, arbitrary: fc.constantFrom('| label_format a="{{.b}}"', "| drop a", "| keep b") },
);
const parser = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("json", "json", "json", "logfmt", "logfmt") },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom("json", "logfmt"),
        fc.uniqueArray(name, { minLength: 1, maxLength: 4 }),
      )
      .map(([kind, keys]) => `${kind} ${keys.map((key) => `${key}="${key}"`).join(", ")}`),
  },
  fc.constantFrom("logfmt --strict", "json a, b", "logfmt a, level", 'json a="b"', 'json x="a.b"'),
);
const selected = fc.oneof(
  fc.tuple(fc.constant("count_over_time"), fc.constant("")),
  fc.tuple(
    fc.constantFrom("sum", "min", "max", "first", "last", "quantile", "avg"),
    fc
      .tuple(name, fc.constantFrom("", "duration", "bytes"), fc.boolean())
      .map(([label, conversion, isClean]) => {
        const wanted = conversion === "" ? label : `${conversion}(${label})`;
        return `| unwrap ${wanted}${isClean ? ' | __error__=""' : ""}`;
      }),
  ),
);
const logQuery = fc
  .record({
    before: fc.option(filter, { freq: 1 }),
    parser,
    stages: fc.array(stage, { minLength: 1, maxLength: 4 }),
  })
  .map(({ before, parser, stages }) => {
    const first = before === null ? "" : `| ${before} `;
    return `{job="t"} ${first}| ${parser} ${stages.join(" ")}`;
  });
const query = fc
  .record({
    before: fc.option(filter, { freq: 1 }),
    parser,
    stages: fc.array(stage, { maxLength: 3 }),
    selected,
    groups: fc.option(fc.uniqueArray(name, { maxLength: 3 }), { freq: 20 }),
  })
  .map(({ before, parser, stages, selected: [fn, unwrap], groups }) => {
    const first = before === null ? "" : `| ${before} `;
    const log = `{job="t"} ${first}| ${parser} ${stages.join(" ")} ${unwrap} [1m]`;
    const by = groups === null ? "" : `by (${groups.join(", ")})`;
    const inner = fn === "quantile" ? `quantile_over_time(0.5, ${log})` : `${overTime(fn)}(${log})`;
    return fn === "count_over_time" || fn === "sum" ? `sum ${by} (${inner})` : `${inner} ${by}`;
  });

function overTime(fn: string): string {
  return fn.endsWith("over_time") ? fn : `${fn}_over_time`;
}

/** A line with some byte replaced, which may break a character. */
const broken = fc.tuple(line, fc.nat(), fc.nat(255)).map(([whole, at, byte]) => {
  const bytes = new TextEncoder().encode(whole);
  if (bytes.length > 0) bytes[at % bytes.length] = byte;
  return bytes;
});
/** Most rows are as a merge meets them: well formed, with names that clash with nothing. All rows may have some names. */
const rows = fc.tuple(fc.constantFrom(0, 0, 0, 0.2, 1), fc.subarray(names)).chain((chosen) => {
  const [oddShare, everywhere] = chosen;
  const isOdd = fc.integer({ min: 1, max: 100 }).map((at) => at <= oddShare * 100);
  const whole = fc.oneof(
    fc
      .dictionary(
        name,
        fc.oneof(
          ...[value, value, fc.integer(), fc.boolean(), fc.constant(null)],
          ...[fc.constant([1]), fc.dictionary(name, value, { maxKeys: 2 })],
        ),
      )
      .map((fields) =>
        JSON.stringify({ ...Object.fromEntries(everywhere.map((n) => [n, 7])), ...fields }),
      ),
    fc
      .array(fc.tuple(name, value), { maxLength: 5 })
      .map((pairs) => [...everywhere.map((n) => [n, 7]), ...pairs])
      .map((pairs) => pairs.map(([key, text]) => `${key}=${JSON.stringify(text)}`).join(" ")),
  );
  return fc.array(
    fc.tuple(row, fc.option(broken), whole, fc.nat(100), isOdd, isOdd).map(
      ([plain, other, line, at, hasOddLine, hasOddLabels]): PlainRow => ({
        labels: hasOddLabels ? { ...plain.labels, job: "t" } : { job: "t" },
        metadata: (hasOddLabels && plain.metadata) || {},
        ts: BigInt(at) * 1_000_000_000n,
        line: hasOddLine ? (other ?? plain.line) : line,
      }),
    ),
    { minLength: 1, maxLength: 20 },
  );
});

const params: QueryParams = {
  ...{ startNs: 60_000_000_000n, endNs: 120_000_000_000n, stepNs: 30_000_000_000n },
  ...{ limit: 100, direction: "forward", intervalNs: 0n },
};

it("queries over fields as columns answer as they do over lines", () => {
  let answers = 0;
  fc.assert(
    fc.property(
      fc.oneof(query, logQuery),
      rows,
      fc.uniqueArray(name, { minLength: 1 }),
      fc.constantFrom("json" as const, "logfmt" as const),
      fc.constantFrom(2, 7, 100),
      (text, all, fieldNames, parser, blockRows) => {
        const layout: Layout = { sources: 1, blockRows, sealed: true };
        const ask = (laidOut: Layout) => {
          try {
            return runQuery(parseQuery(text), all, params, laidOut);
          } catch (error) {
            return (error as Error).message;
          }
        };
        const want = ask(layout);
        if (typeof want !== "string") answers++;
        expect(ask({ ...layout, fields: { names: fieldNames, parser } })).toEqual(want);
        expect(ask({ ...layout, fields: { names, parser }, texts: ["a", "e"] })).toEqual(want);
      },
    ),
    { numRuns: testRuns(900) },
  );
  expect(answers).toBeGreaterThan(0);
});
