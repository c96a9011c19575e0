import { expect, it } from "@jest/globals";
import type { Labels, NeedleFormula } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import type { LabelFilter, LineFilterOp, Stage, Unwrap } from "../syntax/ast.js";
import { allRows, makeBlock, type PlainRow } from "../testing/memory-block.js";
import { type NaiveResult, runNaive } from "../testing/naive/pipeline.js";
import { compileStages } from "./compile.js";
import { compilePipeline } from "./pipeline.js";
import { BlockRun } from "./run.js";
import type { PipelineOptions, Series } from "./types.js";

const numRuns = testRuns(250);

const name = fc.constantFrom(
  "a",
  "b",
  "c",
  "app",
  "level",
  "a_b",
  "user",
  "app_extracted",
  "__error__",
);
const word = fc.constantFrom(
  "",
  "x",
  "error",
  "info",
  "10",
  "2.5",
  "1e3",
  "abc",
  "5ms",
  "1h30m",
  "10KB",
  "2KiB",
  "10.0.0.1",
  "::1",
  "ü",
  "a b",
  "1_0",
  "-3",
);

const jsonScalar = fc.oneof(
  word.map((text) => JSON.stringify(text)),
  fc.constantFrom(
    "1",
    "-2.5",
    "true",
    "false",
    "null",
    "nul",
    '"q\\u00e9\\n"',
    '"bad\\q"',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\ufffd"',
    '"open',
    "1x",
    "",
  ),
);
const { jsonValue } = fc.letrec<{ jsonValue: string; jsonObject: string }>((tie) => ({
  jsonValue: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    jsonScalar,
    fc.array(tie("jsonValue"), { maxLength: 3 }).map((items) => `[${items.join(",")}]`),
    tie("jsonObject"),
  ),
  jsonObject: fc
    .array(
      fc.tuple(
        fc.constantFrom(
          "a",
          "b",
          "c",
          "level",
          "app",
          "user",
          "a.b",
          "9x",
          "ü",
          " k ",
          "\\u0061",
          "_entry",
          "",
          "bad\\q",
        ),
        fc.constantFrom(":", ":", ":", " : ", ""),
        tie("jsonValue"),
      ),
      { maxLength: 5 },
    )
    .map((members) => `{${members.map(([k, colon, v]) => `"${k}"${colon}${v}`).join(",")}}`),
}));

const pair = fc.tuple(
  fc.constantFrom("a", "b", "c", "level", "app", "user", "a.b", "9x", "ü", "=", '"q"', "flag", "x"),
  fc.constantFrom("=", "=", "=", "", " = ", "=="),
  fc.oneof(
    word,
    fc.constantFrom(
      '"two words"',
      '"esc \\" \\n"',
      '"open',
      '"bad \\q"',
      '"\\ud800"',
      '"\ttab \\n"',
      '"a"b',
      "\ufffd",
      "'s'",
    ),
  ),
);
const logfmtLine = fc
  .array(pair, { maxLength: 6 })
  .map((pairs) => pairs.map((parts) => parts.join("")).join(" "));

const text = fc
  .array(
    fc.constantFrom(
      "error",
      "ERROR",
      "info",
      " ",
      "<",
      ">",
      "-",
      "10.0.0.1",
      "256.1.1.1",
      "::1",
      "\u001b[31m",
      "\u001b[1;33m",
      "\u001b]0;x\u0007",
      "\u009b2K",
      "\u001b;",
      "ü",
      "😀",
      "a",
      "x",
      "\n",
      "took 5ms",
      "=",
      "ſ",
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));

const line = fc.oneof(
  jsonValue,
  jsonValue.chain((full) => fc.nat(full.length).map((end) => full.slice(0, end))),
  logfmtLine,
  text,
);

const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc.constantFrom({ app: "x" }, { app: "y", level: "warn" }, { env: "p", a: "1" }),
  ts: fc.nat(1_000_000_000).map((ns) => 1_700_000_000_000_000_000n + BigInt(ns)),
  line,
  metadata: fc.dictionary(fc.constantFrom("user", "level", "a", "trace", "__error__"), word, {
    maxKeys: 3,
  }),
});

const matcher = fc.record({
  name,
  op: fc.constantFrom("=" as const, "!=" as const, "=~" as const, "!~" as const),
  value: fc.constantFrom(
    "",
    "x",
    "error",
    "info",
    "10",
    ".+",
    "1.*",
    "x|error",
    "(?i)ERROR",
    "e.*o",
    ".*",
    ".*r.*",
  ),
});
const compareOp = fc.constantFrom(
  "==" as const,
  "!=" as const,
  ">" as const,
  ">=" as const,
  "<" as const,
  "<=" as const,
);
const simpleFilter: fc.Arbitrary<LabelFilter> = fc.oneof(
  matcher.map((m) => ({ kind: "string" as const, matcher: m })),
  fc.record({
    kind: fc.constant("number" as const),
    name,
    op: compareOp,
    value: fc.constantFrom(0, 10, 2.5, -3, 1000),
  }),
  fc.record({
    kind: fc.constant("duration" as const),
    name,
    op: compareOp,
    value: fc.constantFrom(5_000_000n, 5_400_000_000_000n),
  }),
  fc.record({
    kind: fc.constant("bytes" as const),
    name,
    op: compareOp,
    value: fc.constantFrom(10, 10_000, 2048),
  }),
  fc.record({
    kind: fc.constant("ip" as const),
    name,
    op: fc.constantFrom("==" as const, "!=" as const),
    value: fc.constantFrom("10.0.0.1", "10.0.0.0/8", "::1"),
  }),
);
const labelFilter: fc.Arbitrary<LabelFilter> = fc.oneof(
  { weight: 3, arbitrary: simpleFilter },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("and" as const, "or" as const),
      left: simpleFilter,
      right: simpleFilter,
    }),
  },
);

const lineValue = fc.constantFrom("error", "info", "a", "", "10.0.0", "ü", "\n", "[31m");
const lineFilter: fc.Arbitrary<Stage> = fc.oneof(
  fc.record({
    kind: fc.constant("line_filter" as const),
    op: fc.constantFrom<LineFilterOp>("|=", "!="),
    alternatives: fc.array(
      fc.oneof(
        lineValue.map((value) => ({ kind: "text" as const, value })),
        fc.constantFrom("10.0.0.1", "::/0").map((value) => ({ kind: "ip" as const, value })),
      ),
      { minLength: 1, maxLength: 7 },
    ),
  }),
  fc.record({
    kind: fc.constant("line_filter" as const),
    op: fc.constantFrom<LineFilterOp>("|~", "!~"),
    alternatives: fc.array(
      fc
        .constantFrom(
          "error",
          "(?i)error",
          "err|inf",
          "err|INF|10|x=|ü|1h",
          "(?i)(err|INF|10|x=|b:|1h)or",
          "^a",
          "x$",
          "e.*r",
          "\\d+ms",
          "(?i)is",
          "",
          "[ex]r+",
          "a\\nx",
        )
        .map((value) => ({ kind: "text" as const, value })),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  fc.record({
    kind: fc.constant("line_filter" as const),
    op: fc.constantFrom<LineFilterOp>("|>", "!>"),
    alternatives: fc.array(
      fc
        .constantFrom("<_>error<_>", "a<_>", "<_>", "", "<_> <_>", "{<_>}")
        .map((value) => ({ kind: "text" as const, value })),
      { minLength: 1, maxLength: 2 },
    ),
  }),
);

const template = fc.constantFrom(
  "{{.a}}",
  "{{.level}} {{.app}}",
  "{{__line__}}",
  "x",
  "",
  "{{.a.b}}",
  "{{ upper .level }}={{ div 1 0 }}",
  "{{ if .a }}{{.a}}{{ else }}none{{ end }}",
  "{{ .user | trunc 2 }} error=1",
  "{{ range $k, $v := fromJson __line__ }}{{$k}}{{end}}",
  "{{.__error__}}",
  "{{ . }}",
  '{"a":"{{.b}}","n":1}',
  "{{ unixEpoch __timestamp__ }}",
);
const target = fc.oneof(
  name.map((n) => ({ kind: "name" as const, name: n })),
  matcher.map((m) => ({ kind: "matcher" as const, matcher: m })),
);
const extractions = (paths: readonly string[]) =>
  fc.uniqueArray(
    fc.record({
      label: fc.constantFrom("a", "b", "app", "n", "level"),
      path: fc.constantFrom(...paths),
    }),
    {
      minLength: 1,
      maxLength: 3,
      selector: ({ label }) => label,
    },
  );

const stage: fc.Arbitrary<Stage> = fc.oneof(
  lineFilter,
  {
    weight: 2,
    arbitrary: labelFilter.map((filter) => ({ kind: "label_filter" as const, filter })),
  },
  { weight: 2, arbitrary: fc.constant<Stage>({ kind: "json", extractions: [] }) },
  extractions(["a", "a.b", "a[0]", '["a.b"]', "c.a[1].b", "level"]).map((list) => ({
    kind: "json" as const,
    extractions: list,
  })),
  fc.record({
    kind: fc.constant("logfmt" as const),
    strict: fc.boolean(),
    keepEmpty: fc.boolean(),
    extractions: fc.oneof(fc.constant([]), extractions(["a", "b", "level", "x"])),
  }),
  fc
    .constantFrom("(?P<a>\\w+)=(?P<level>\\S*)", "^(?P<app>.)(?P<x>zz)?", "took (?P<a>\\d+)")
    .map((pattern) => ({ kind: "regexp" as const, pattern })),
  fc
    .constantFrom("<a>=<b>", "{<_>:<app>,<_>", "a=<a> <_>", "<level> <rest>")
    .map((pattern) => ({ kind: "pattern" as const, pattern })),
  fc.constant<Stage>({ kind: "unpack" }),
  fc.constant<Stage>({ kind: "decolorize" }),
  template.map((source) => ({ kind: "line_format" as const, template: source })),
  fc.record({
    kind: fc.constant("label_format" as const),
    formats: fc.uniqueArray(
      fc.oneof(
        fc.record({
          kind: fc.constant("rename" as const),
          label: fc.constantFrom("a", "app", "z"),
          source: name,
        }),
        fc.record({
          kind: fc.constant("template" as const),
          label: fc.constantFrom("a", "level", "z"),
          template,
        }),
      ),
      { minLength: 1, maxLength: 3, selector: ({ label }) => label },
    ),
  }),
  fc.record({
    kind: fc.constantFrom("drop" as const, "keep" as const),
    targets: fc.array(target, { minLength: 1, maxLength: 2 }),
  }),
);

const unwrap: fc.Arbitrary<Unwrap | undefined> = fc.option(
  fc.record({
    label: fc.constantFrom("a", "b", "level", "user"),
    conversion: fc.constantFrom(
      "none" as const,
      "duration" as const,
      "duration_seconds" as const,
      "bytes" as const,
    ),
    filters: fc.array(labelFilter, { maxLength: 1 }),
  }),
  { nil: undefined },
);

function optionsOf(
  stages: readonly Stage[],
  unwrapped: Unwrap | undefined,
  output: PipelineOptions["output"],
): PipelineOptions {
  return { stages, output, ...(unwrapped === undefined ? {} : { unwrap: unwrapped }) };
}

function object({ names, values }: Labels): Record<string, string> {
  return Object.fromEntries(names.map((n, i) => [n, values[i]!]));
}

interface Row {
  readonly index: number;
  readonly line: string;
  readonly value: number | undefined;
  readonly series: Series;
}

/** Runs rows in blocks of a few rows each, so that a run sees several blocks. */
function runBlocks(
  options: PipelineOptions,
  rows: readonly PlainRow[],
  dictionaryMax: number,
  run = compilePipeline(options).start(),
): readonly Row[] {
  const results: Row[] = [];
  for (let from = 0; from < rows.length; from += 5) {
    const part = rows.slice(from, from + 5);
    const { block, streamLabels } = makeBlock(part, { dictionaryMax });
    const batch = run.process(block, streamLabels, allRows(block));
    const { lines } = batch;
    for (let i = 0; i < batch.count; i++) {
      const row = batch.rows[i]!;
      const changed =
        lines &&
        Buffer.from(lines.bytes.subarray(lines.offsets[i], lines.offsets[i + 1])).toString();
      results.push({
        index: from + row,
        line: changed ?? part[row]!.line.toString(),
        value: batch.values?.[i],
        series: run.series.get(batch.series[i]!),
      });
    }
  }
  return results;
}

function runRows(
  options: PipelineOptions,
  rows: readonly PlainRow[],
): readonly (NaiveResult & { index: number })[] {
  return rows.flatMap((plain, index) => {
    const { labels, ts, line: text, metadata = {} } = plain;
    const result = runNaive(options, { labels, ts, line: text.toString(), metadata });
    return result === undefined ? [] : [{ ...result, index }];
  });
}

const input = fc.tuple(
  fc.array(stage, { maxLength: 5 }),
  fc.array(row, { minLength: 1, maxLength: 12 }),
  fc.constantFrom(0, 16),
);

it("log output equals the specification", () => {
  fc.assert(
    fc.property(input, ([stages, rows, dictionaryMax]) => {
      const options = optionsOf(stages, undefined, { kind: "log" });
      const want = runRows(options, rows).map(({ index, line: text, labels, categories }) => ({
        index,
        line: text,
        labels,
        ...categories,
      }));
      const got = runBlocks(options, rows, dictionaryMax).map(({ index, line: text, series }) => ({
        index,
        line: text,
        labels: object(series.labels),
        stream: object(series.categories?.stream as Labels),
        structuredMetadata: object(series.categories?.structuredMetadata as Labels),
        parsed: object(series.categories?.parsed as Labels),
      }));
      expect(got).toEqual(want);
    }),
    { numRuns },
  );
});

it("every row that survives holds the formula", () => {
  fc.assert(
    fc.property(input, ([stages, rows]) => {
      const options = optionsOf(stages, undefined, { kind: "log" });
      const { formula } = compilePipeline(options);
      if (formula === undefined) return;
      for (const { index } of runRows(options, rows)) {
        expect([formula, rows[index], holds(formula, rows[index]!)]).toEqual([
          ...[formula, rows[index], true],
        ]);
      }
    }),
    { numRuns },
  );
});

/** What filters answer, were they exact; a label of a stream stands before metadata. */
function holds(formula: NeedleFormula, row: PlainRow): boolean {
  switch (formula.kind) {
    case "all":
      return formula.of.every((part) => holds(part, row));
    case "any":
      return formula.of.some((part) => holds(part, row));
    case "text": {
      const lower = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
      const line = row.line.toString();
      const wanted = Buffer.from(formula.text).toString();
      return lower(line).includes(lower(wanted)) || (formula.folds && /[\u017f\u212a]/.test(line));
    }
    case "value": {
      const { name, value } = formula;
      const own = row.metadata?.[name];
      return name in row.labels || own === Buffer.from(value).toString();
    }
  }
}

it("metric output without grouping equals the specification", () => {
  fc.assert(
    fc.property(input, unwrap, ([stages, rows, dictionaryMax], unwrapped) => {
      const options = optionsOf(stages, unwrapped, { kind: "metric" });
      const want = runRows(options, rows);
      const got = runBlocks(options, rows, dictionaryMax);
      expect(got.map(({ index, line: text }) => ({ index, line: text }))).toEqual(
        want.map(({ index, line: text }) => ({ index, line: text })),
      );
      for (const [i, { value, series }] of got.entries()) {
        const naive = want[i]!;
        if (unwrapped !== undefined) expect(value).toBe(naive.value);
        expect(series.error?.kind).toBe(naive.error?.kind);
        if (naive.error === undefined) expect(object(series.labels)).toEqual(naive.labels);
      }
    }),
    { numRuns },
  );
});

it("grouped metric output equals the specification where nothing fails", () => {
  const grouping = fc.record({
    without: fc.boolean(),
    labels: fc.uniqueArray(name, { maxLength: 3 }),
  });
  fc.assert(
    fc.property(input, unwrap, grouping, ([stages, rows, dictionaryMax], unwrapped, groups) => {
      const options = optionsOf(stages, unwrapped, { kind: "metric", grouping: groups });
      const want = runRows(options, rows);
      // fields that nobody uses cannot fail, so only queries without any error are comparable
      const unfiltered = stages.filter(
        ({ kind }) => !["drop", "keep", "line_filter", "label_filter"].includes(kind),
      );
      const all = runRows(optionsOf(unfiltered, undefined, { kind: "log" }), rows);
      fc.pre(all.every(({ labels }) => labels.__error__ === undefined));
      fc.pre(want.every(({ error }) => error === undefined));
      const got = runBlocks(options, rows, dictionaryMax);
      expect(
        got.map(({ index, line: text, value, series }) => ({
          index,
          line: text,
          labels: object(series.labels),
          value: unwrapped === undefined ? undefined : value,
        })),
      ).toEqual(
        want.map(({ index, line: text, labels, value }) => ({
          index,
          line: text,
          labels,
          value: unwrapped === undefined ? undefined : value,
        })),
      );
    }),
    // many inputs are not comparable, and each is run three times
    { numRuns: Math.ceil(numRuns / 3) },
  );
});

/** A run whose parsers read every line by themselves. */
function runOfParsers(options: PipelineOptions): BlockRun {
  const compiled = compileStages(options);
  const tail = compiled.tail.map(({ prepare, context }) => ({
    prepare,
    context: { ...context, isFirst: false },
  }));
  return new BlockRun({ ...compiled, tail });
}

const parser: fc.Arbitrary<Stage> = fc.oneof(
  fc.constant<Stage>({ kind: "json", extractions: [] }),
  fc.record({
    kind: fc.constant("logfmt" as const),
    strict: fc.boolean(),
    keepEmpty: fc.boolean(),
    extractions: fc.oneof(fc.constant([]), extractions(["a", "b", "level", "x"])),
  }),
);
/** A line with some byte replaced, which may break a character. */
const brokenLine = fc.tuple(line, fc.nat(), fc.nat(255)).map(([whole, at, byte]) => {
  const bytes = new TextEncoder().encode(whole);
  if (bytes.length > 0) bytes[at % bytes.length] = byte;
  return bytes;
});

it("fields found in whole blocks are those of the parsers", () => {
  const rows = fc.array(
    fc.tuple(row, fc.option(brokenLine)).map(([plain, broken]) => ({
      ...plain,
      line: broken ?? plain.line,
    })),
    { minLength: 1, maxLength: 12 },
  );
  const stages = fc.tuple(parser, fc.array(stage, { maxLength: 3 }));
  const labels = fc.uniqueArray(fc.oneof(name, fc.constantFrom("_9x", "a_a", "x", "flag")), {
    maxLength: 3,
  });
  fc.assert(
    fc.property(
      stages,
      rows,
      fc.constantFrom(0, 16),
      unwrap,
      labels,
      ([first, more], plain, dictionaryMax, unwrapped, by) => {
        const grouping = { without: false, labels: by };
        const output =
          by.length === 0 && unwrapped === undefined
            ? { kind: "log" as const }
            : { kind: "metric" as const, grouping };
        const options = optionsOf([first, ...more], unwrapped, output);
        const parsed = runBlocks(options, plain, dictionaryMax, runOfParsers(options));
        expect(runBlocks(options, plain, dictionaryMax)).toEqual(parsed);
      },
    ),
    { numRuns: numRuns * 2 },
  );
});
