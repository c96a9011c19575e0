import { expect, it } from "@jest/globals";
import type { Labels, NeedleFormula } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import type { Stage, Unwrap } from "../syntax/ast.js";
import { allRows, makeBlock, type PlainRow } from "../testing/memory-block.js";
import { runNaive } from "../testing/naive/pipeline.js";
import type { NaiveResult } from "../testing/naive/row-state.js";
import { compilePipeline, compileStages } from "./compile.js";
import type { Pipeline, PipelineOptions, Series } from "./pipeline.js";
import { BlockRun } from "./run.js";
import { line, name, row } from "./testing/arbitrary-rows.js";
import { extractions, stage, unwrap } from "./testing/arbitrary-stages.js";

const numRuns = testRuns(250);

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
  { dictionaryMax = 16, texts = [] }: { dictionaryMax?: number; texts?: readonly Uint8Array[] },
  pipeline: Pick<Pipeline, "start" | "readsLines"> = compilePipeline(options),
): readonly Row[] {
  const run = pipeline.start();
  const results: Row[] = [];
  for (let from = 0; from < rows.length; from += 5) {
    const part = rows.slice(from, from + 5);
    const { block: made, streamLabels } = makeBlock(part, { dictionaryMax, texts });
    const readsLines = pipeline.readsLines(made.facts);
    const block = readsLines ? made : { ...made, lines: noLines };
    const batch = run.process(block, streamLabels, allRows(block));
    const mayPass = run.mayPass(made.facts!);
    for (let i = 0; mayPass !== undefined && i < batch.count; i++) {
      const row = batch.rows[i]!;
      expect((mayPass[row >> 5]! >>> (row & 31)) & 1).toBe(1);
    }
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

function noLines(): never {
  throw new Error("the lines of this block are not read");
}

/** Texts whose rows blocks know: such as filters ask for, parts of them, and such as no line has. */
const knownTexts = ["error", "err", "info", "a", "x", "10.0", "ü", "\n", "e", "absent"];
const knowledge = fc.record({
  dictionaryMax: fc.constantFrom(0, 16),
  texts: fc
    .subarray(knownTexts)
    .map((texts) => texts.map((text) => new TextEncoder().encode(text))),
});

const input = fc.tuple(
  fc.array(stage, { maxLength: 5 }),
  fc.array(row, { minLength: 1, maxLength: 12 }),
  knowledge,
);

it("log output equals the specification", () => {
  fc.assert(
    fc.property(input, ([stages, rows, known]) => {
      const options = optionsOf(stages, undefined, { kind: "log" });
      const want = runRows(options, rows).map(({ index, line: text, labels, categories }) => ({
        index,
        line: text,
        labels,
        ...categories,
      }));
      const got = runBlocks(options, rows, known).map(({ index, line: text, series }) => ({
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
    fc.property(input, unwrap, ([stages, rows, known], unwrapped) => {
      const options = optionsOf(stages, unwrapped, { kind: "metric" });
      const want = runRows(options, rows);
      const got = runBlocks(options, rows, known);
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
    fc.property(input, unwrap, grouping, ([stages, rows, known], unwrapped, groups) => {
      const options = optionsOf(stages, unwrapped, { kind: "metric", grouping: groups });
      const want = runRows(options, rows);
      // fields that nobody uses cannot fail, so only queries without any error are comparable
      const unfiltered = stages.filter(
        ({ kind }) => !["drop", "keep", "line_filter", "label_filter"].includes(kind),
      );
      const all = runRows(optionsOf(unfiltered, undefined, { kind: "log" }), rows);
      fc.pre(all.every(({ labels }) => labels.__error__ === undefined));
      fc.pre(want.every(({ error }) => error === undefined));
      const got = runBlocks(options, rows, known);
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
function withParsers(options: PipelineOptions): Pick<Pipeline, "start" | "readsLines"> {
  const compiled = compileStages(options);
  const tail = compiled.tail.map(({ prepare, context }) => ({
    prepare,
    context: { ...context, isFirst: false },
  }));
  return { start: () => new BlockRun({ ...compiled, tail }), readsLines: () => true };
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
      knowledge,
      unwrap,
      labels,
      ([first, more], plain, known, unwrapped, by) => {
        const grouping = { without: false, labels: by };
        const output =
          by.length === 0 && unwrapped === undefined
            ? { kind: "log" as const }
            : { kind: "metric" as const, grouping };
        const options = optionsOf([first, ...more], unwrapped, output);
        const parsed = runBlocks(options, plain, known, withParsers(options));
        expect(runBlocks(options, plain, known)).toEqual(parsed);
      },
    ),
    { numRuns: numRuns * 2 },
  );
});
