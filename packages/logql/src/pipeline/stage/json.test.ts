import { describe, expect, it } from "@jest/globals";
import type { Stage } from "../../syntax/ast.js";
import { allRows, makeBlock } from "../../testing/memory-block.js";
import { runStages } from "../../testing/run-stages.js";
import { compilePipeline } from "../compile.js";

const error = (details: string) => ({ __error__: "JSONParserErr", __error_details__: details });
const noObject = "Value looks like object, but can't find closing '}' symbol";

describe("json", () => {
  it.each([
    ["nested names joined", '{"a":{"b":{"c":"deep"}},"s":"x"}', { a_b_c: "deep", s: "x" }],
    [
      "numbers as written",
      '{"n":1.50,"e":1e5,"z":-0,"b":12345678901234567890}',
      { n: "1.50", e: "1e5", z: "-0", b: "12345678901234567890" },
    ],
    [
      "booleans, no null, no array",
      '{"t":true,"f":false,"n":null,"a":[1,{"x":1}]}',
      { t: "true", f: "false" },
    ],
    ["an empty text", '{"e":"","o":{}}', { e: "" }],
    ["escapes", '{"a":"l\\nb \\u00e9 \\"q\\" \\/ \\ud83d\\ude00"}', { a: 'l\nb é "q" / 😀' }],
    ["a wrong escape as nothing", '{"a":"x\\q","b":"\\ud800","c":"1"}', { a: "", b: "", c: "1" }],
    ["U+FFFD as a blank", '{"a":"x\ufffdy"}', { a: "x y" }],
    [
      "sanitised names",
      '{"key with space":1,"dash-key":2,"9l":3,"ünï":4," t ":5,"a..b":6}',
      { key_with_space: "1", dash_key: "2", _9l: "3", _n_: "4", t: "5", a__b: "6" },
    ],
    ["a nested name may begin with a digit", '{"a":{"9l":1}}', { a_9l: "1" }],
    ["an escaped name", '{"\\u0061\\n":1}', { a: "1" }],
    ["the first of equal names", '{"a.b":"x","a":{"b":"y"},"a.b":"z"}', { a_b: "x" }],
    ["blanks anywhere", ' \t{ "a" : 1 , "b" : { "c" : 2 } } ', { a: "1", b_c: "2" }],
    ["nothing behind the object", '{"a":1} trailing }', { a: "1" }],
    ["an empty object", "{}", {}],
  ])("reads %s", (_, line, want) => {
    expect(runStages("| json", line)).toEqual({ line, labels: want });
  });

  it.each([
    ["plain text", noObject, {}],
    ["", noObject, {}],
    ["[1,2]", noObject, {}],
    ['"text"', noObject, {}],
    ["{", "Malformed JSON error", {}],
    ['{"a":1,"b', "Malformed JSON error", { a: "1" }],
    ['{"a":1,"b"', "Malformed JSON error", { a: "1" }],
    ['{"a":1,"b":', "Malformed JSON error", { a: "1" }],
    ['{"a":1,"b":"x', "Value is string, but can't find closing '\"' symbol", { a: "1" }],
    ['{"a":1,"b":[1', "Value is array, but can't find closing ']' symbol", { a: "1" }],
    ['{"a":1,"b":{"c":2', noObject, { a: "1" }],
    ['{"a":1', "Value is array, but can't find closing ']' symbol", { a: "1" }],
    ['{"a":1 "b":2}', noObject, { a: "1" }],
    ['{"a":nul}', "Unknown value type", {}],
    ['{"a":{"b":1,"c" 2}}', "Malformed JSON error", { a_b: "1" }],
    ['{"\\q":1}', "Encountered an invalid escape sequence in a string", {}],
  ])("keeps %j with the error %s", (line, details, labels) => {
    expect(runStages("| json", line)).toEqual({ line, labels: { ...labels, ...error(details) } });
  });

  it("gives a taken name another one", () => {
    const input = { labels: { app: "x" }, metadata: { user: "m" } };
    expect(runStages("| json", '{"app":1,"user":2,"b":3}', input)?.labels).toEqual({
      app_extracted: "1",
      user_extracted: "2",
      b: "3",
    });
  });

  it.each([
    ["drop user", {}],
    ["keep nosuch", {}],
    ["label_format other=user", { other: "m" }],
    ['label_format user="f"', {}],
  ])("gives the name of metadata to a key behind `%s`", (stage, rest) => {
    const input = { metadata: { user: "m" } };
    const staged = runStages(`| ${stage} | json | user="2"`, '{"user":2}', input);
    expect(staged?.labels).toEqual({ ...rest, user: "2" });
  });

  it("leaves the name of a stream label taken, dropped or not", () => {
    const input = { labels: { app: "x" } };
    expect(runStages("| drop app | json", '{"app":1}', input)?.labels).toEqual({
      app_extracted: "1",
    });
  });

  it("leaves what an earlier parser found", () => {
    expect(runStages('| json | line_format `{"a":9,"b":8}` | json', '{"a":1}')?.labels).toEqual({
      a: "1",
      b: "8",
    });
  });

  it("blanks broken UTF-8", () => {
    const line = Buffer.from([...Buffer.from('{"a":"x'), 0xff, 0xc3, ...Buffer.from('y"}')]);
    expect(runStages("| json", line)?.labels).toEqual({ a: "x  y" });
  });

  it("drops a row as soon as a value fails a later filter", () => {
    expect(runStages('| json | a="2"', '{"a":1')).toBeUndefined();
    expect(runStages('| json | label_format a="2" | a="2"', '{"a":1}')).toBeUndefined();
  });

  it("refuses objects nested ever deeper", () => {
    const line = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    expect(runStages("| json", line)?.labels).toEqual(error("Value is nested too deeply"));
  });

  it("reads no further than the last wanted field, and skips useless parsers", () => {
    const json: Stage = { kind: "json", extractions: [] };
    const metric = (labels: readonly string[], stages: readonly Stage[] = [json]) => {
      const pipeline = compilePipeline({
        stages,
        output: { kind: "metric", grouping: { without: false, labels } },
      });
      const run = pipeline.start();
      const { block, streamLabels } = makeBlock([
        { labels: { app: "x" }, ts: 0n, line: '{"level":"info","broken' },
      ]);
      const batch = run.process(block, streamLabels, allRows(block));
      return { needs: pipeline.needs.lines, series: run.series.get(batch.series[0]!) };
    };
    expect(metric([]).needs).toBe(false);
    expect(metric([]).series.error).toBeUndefined();
    expect(metric(["level"]).series).toEqual({ labels: { names: ["level"], values: ["info"] } });
    const fault = {
      kind: "JSONParserErr",
      labelsText:
        '{__error__="JSONParserErr", __error_details__="Malformed JSON error", app="x", level="info"}',
    };
    expect(metric(["level", "other"]).series.error).toEqual(fault);
    // a parser never finds what a stream label has
    expect(metric(["level", "app"]).series.error).toEqual(fault);
    const keep = (name: string): Stage => ({ kind: "keep", targets: [{ kind: "name", name }] });
    expect(metric(["env"], [json, keep("app")]).series.error?.kind).toBe("JSONParserErr");
    expect(metric([], [json, keep("app")]).series.error).toBeUndefined();
    expect(metric(["__error__"]).series).toEqual({
      labels: { names: ["__error__"], values: ["JSONParserErr"] },
    });
  });

  it("forgets keys when they are ever new", () => {
    const stages = [{ kind: "json" as const, extractions: [] }];
    const run = compilePipeline({
      stages,
      output: { kind: "metric", grouping: { without: false, labels: ["a"] } },
    }).start();
    for (let b = 0; b < 5; b++) {
      const rows = Array.from({ length: 100 }, (_, i) => {
        const keys = Array.from({ length: 200 }, (_, k) => `"k${b}_${i}_${k}":1`);
        return { labels: {}, ts: 0n, line: `{${keys.join(",")},"a":"${i % 3}"}` };
      });
      const { block, streamLabels } = makeBlock(rows);
      expect(run.process(block, streamLabels, allRows(block)).count).toBe(100);
    }
    expect(run.series.count).toBe(3);
  });
});
