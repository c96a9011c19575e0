import { describe, expect, it } from "@jest/globals";
import { labelsToObject } from "@skald/model";
import type { LogExpr } from "../../syntax/ast.js";
import { parseQuery } from "../../syntax/parser.js";
import { allRows, makeBlock } from "../../testing/memory-block.js";
import { runStages } from "../../testing/run-stages.js";
import { compilePipeline } from "../compile.js";

const input = { labels: { app: "x" }, metadata: { user: "bob" } };

describe("line_format", () => {
  it.each([
    ["{{.app}} {{.user}} {{.missing}}|", "x bob |"],
    ["", ""],
    ["{{__line__ | upper}}", "A=1"],
    ["{{ .missing.deep }}", "a=1"],
  ])("%s", (template, want) => {
    expect(runStages(`| line_format \`${template}\``, "a=1", input)?.line).toBe(want);
  });

  it("keeps the line and sets an error when the template fails", () => {
    expect(runStages("| logfmt | line_format `{{ div .a 0 }}`", "a=1")).toEqual({
      line: "a=1",
      labels: {
        a: "1",
        __error__: "TemplateFormatErr",
        __error_details__:
          'template: line:1:3: executing "line" at <div .a 0>: error calling div: runtime error: integer divide by zero',
      },
    });
  });

  it("refuses a template that does not parse", () => {
    expect(() => runStages('| line_format "{{.a"', "")).toThrow(
      "parse error : stage '| line_format \"{{.a\"' : invalid line template: template: line:1: unclosed action",
    );
  });
});

describe("label_format", () => {
  it.each([
    ["b=a", { b: "1" }],
    ["b=missing", { a: "1" }],
    ['b="{{.a}}-{{.app}}"', { a: "1", b: "1-x" }],
    ['a="{{.z}}", z="{{.a}}"', { a: "", z: "1" }],
    ['c=a, d="{{.a}}{{.c}}"', { c: "1", d: "1" }],
    ['app="new"', { a: "1", app: "new" }],
    ["who=user", { a: "1", who: "bob" }],
    ['e=""', { a: "1", e: "" }],
    // over a label of stronger origin
    ["a=user", { a: "bob" }],
    ["a=app", { a: "x" }],
    ["user=app", { a: "1", user: "x" }],
  ])("%s", (formats, want) => {
    expect(runStages(`| logfmt | label_format ${formats}`, "a=1", input)?.labels).toEqual(want);
  });

  it("makes what it sets a parsed label, whatever it was before", () => {
    const stages = (parseQuery('{a="b"} | label_format where=app, who=user') as LogExpr).stages;
    const run = compilePipeline({ stages, output: { kind: "log" } }).start();
    const { block, streamLabels } = makeBlock([{ ...input, ts: 0n, line: "" }]);
    const batch = run.process(block, streamLabels, allRows(block));
    const { categories } = run.series.get(batch.series[0]!);
    expect(categories && labelsToObject(categories.parsed)).toEqual({ where: "x", who: "bob" });
    expect(categories?.stream.names).toEqual([]);
    expect(categories?.structuredMetadata.names).toEqual([]);
  });

  it("skips a label whose template fails", () => {
    expect(runStages('| label_format a="{{ .app.x }}", b="ok"', "", input)?.labels).toEqual({
      b: "ok",
      __error__: "TemplateFormatErr",
      __error_details__:
        'template: label:1:7: executing "label" at <.app.x>: can\'t evaluate field x in type string',
    });
  });

  it.each([
    ["__error__=a", "__error__ cannot be formatted"],
    ["a=b, a=c", "multiple label name 'a' not allowed in a single format operation"],
    [
      'a="{{ foo }}"',
      "invalid template for label 'a': template: label:1: function \"foo\" not defined",
    ],
  ])("refuses %s", (formats, message) => {
    expect(() => runStages(`| label_format ${formats}`, "")).toThrow(message);
  });
});

describe("drop and keep", () => {
  const all = (stages: string, line = "a=1 b=2") =>
    runStages(`${stages} | label_format seen="{{ . }}"`, line, input)?.labels.seen;
  it.each([
    ["| logfmt | drop a, user", "map[app:x b:2]"],
    ['| logfmt | drop a="2", b=~"2|3"', "map[a:1 app:x user:bob]"],
    ["| drop nosuch", "map[app:x user:bob]"],
    ["| logfmt | keep a", "map[a:1]"],
    ['| logfmt | keep a="2", b, user', "map[b:2 user:bob]"],
    ["| keep nosuch", "map[]"],
    [
      "| json | keep a",
      `map[__error__:JSONParserErr __error_details__:Value looks like object, but can't find closing '}' symbol]`,
    ],
    ["| json | drop __error__, __error_details__", "map[app:x user:bob]"],
    [
      "| json | drop __error__ | keep x",
      `map[__error_details__:Value looks like object, but can't find closing '}' symbol]`,
    ],
    [
      '| json | drop __error__="x", __error_details__',
      "map[__error__:JSONParserErr app:x user:bob]",
    ],
  ])("%s", (stages, want) => {
    expect(all(stages)).toBe(want);
  });
});
