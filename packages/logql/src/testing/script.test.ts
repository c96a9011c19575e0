import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { maxFields } from "@skald/kernels";
import {
  formatLabels,
  formatPrometheusDuration,
  labelsToObject,
  parseStreamText,
} from "@skald/model";
import { parseScript, type Script, type ScriptEval } from "@skald/testkit";
import { formatSample } from "../go/numbers.js";
import type { LogResult, QueryResult } from "../plan/plan.js";
import { lineAt } from "../scan/log-rows.js";
import { parseQuery } from "../syntax/parser.js";
import type { PlainRow } from "./memory-block.js";
import { type Layout, oneSource, runQuery } from "./run-query.js";

const folder = fileURLToPath(new URL("../../../../test/logql", import.meta.url));
/** Scripts count from the start of a day, so that no row lies across midnight. */
const startNs = 20_000n * 86_400_000_000_000n;

for (const file of readdirSync(folder).filter((name) => name.endsWith(".test"))) {
  const script = parseScript(readFileSync(join(folder, file), "utf8"));
  describe(file, () => {
    const rows = rowsOf(script);
    it.each(
      script.evals.map((evaluation) => [evaluation.at, evaluation.query, evaluation] as const),
    )("line %i: %s", (_at, _query, evaluation) => {
      expectAnswer(answer(evaluation, rows, oneSource), evaluation.want);
    });
    it.each(
      script.evals.map((evaluation) => [evaluation.at, evaluation.query, evaluation] as const),
    )("line %i, where blocks know their rows: %s", (_at, query, evaluation) => {
      const names = [...new Set(query.match(/[a-z_]\w*/gi) ?? [])].slice(0, maxFields);
      for (const parser of ["json", "logfmt"] as const) {
        const fields = { names, parser };
        const layout = { ...oneSource, texts: textsOf(query), fields };
        expectAnswer(answer(evaluation, rows, layout), evaluation.want);
      }
    });
  });
}

function expectAnswer(got: readonly string[], want: readonly string[]): void {
  const [error] = want;
  if (error?.startsWith("error: ") === true)
    expect(got.join("\n").slice(0, error.length)).toBe(error);
  else expect(got).toEqual(want);
}

/** Whatever a query quotes, and the word in the middle of it. */
function textsOf(query: string): string[] {
  const quoted = [...query.matchAll(/"([^"\\]+)"|`([^`]+)`/g)].map(([, a, b]) => a ?? b!);
  return quoted.flatMap((text) => [text, /[a-z]{3,}/i.exec(text)?.[0] ?? text]);
}

function rowsOf(script: Script): PlainRow[] {
  return script.loads.flatMap(({ stream, rows }) => {
    const labels = labelsToObject(parseStreamText(stream));
    return rows.map(({ timeNs, line }) => ({ labels, ts: startNs + timeNs, line }));
  });
}

function answer(evaluation: ScriptEval, rows: readonly PlainRow[], layout: Layout): string[] {
  const { fromNs, toNs, instant, stepNs = 1_000_000_000n, query } = evaluation;
  const range = { startNs: startNs + fromNs, endNs: startNs + toNs, stepNs: instant ? 0n : stepNs };
  const params = { ...range, limit: 1000, direction: "forward" as const, intervalNs: 0n };
  try {
    return linesOf(runQuery(parseQuery(query), rows, params, layout));
  } catch (error) {
    return [`error: ${error instanceof Error ? error.message : String(error)}`];
  }
}

function linesOf(result: QueryResult | LogResult): string[] {
  switch (result.kind) {
    case "streams":
      return rowLines(result);
    case "matrix":
      return result.series.map(({ labels, at, values }) => {
        const samples = Array.from(at, (point, i) => {
          const time = result.points.startNs + BigInt(point) * result.points.stepNs - startNs;
          return `${formatPrometheusDuration(time)}:${formatSample(values[i] as number)}`;
        });
        return `${formatLabels(labels)} ${samples.join(" ")}`;
      });
    case "vector":
      return result.samples.map(
        ({ labels, value }) => `${formatLabels(labels)} ${formatSample(value)}`,
      );
    case "scalar":
      return [formatSample(result.value)];
  }
}

function rowLines(result: LogResult): string[] {
  const decoder = new TextDecoder();
  return Array.from({ length: result.rowCount }, (_, row) => {
    const time = formatPrometheusDuration((result.timestamps[row] as bigint) - startNs);
    const labels = result.labels[result.labelSet[row] as number];
    const line = decoder.decode(lineAt(result.lines, row));
    return `${time} ${formatLabels(labels?.labels ?? { names: [], values: [] })} ${line}`;
  });
}
