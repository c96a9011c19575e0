import { describe, expect, it } from "@jest/globals";
import { runTemplate } from "../testing/run-template.js";
import { compileTemplate } from "./template.js";
import { TemplateSyntaxError } from "./value.js";

describe("templates", () => {
  it.each([
    [
      "{{ .idx.deep }}",
      'template: line:1:7: executing "line" at <.idx.deep>: can\'t evaluate field deep in type string',
    ],
    [
      "x\n{{ div 1 0 }}",
      'template: line:2:3: executing "line" at <div 1 0>: error calling div: runtime error: integer divide by zero',
    ],
    ["{{ divf 1 0 }}", "error calling divf: decimal division by 0"],
    ["{{ urldecode `%zz` }}", 'error calling urldecode: invalid URL escape "%zz"'],
    ["{{ div 1 0 | or 1 }}", "at <div 1 0>: error calling div"],
    ["{{ div 1 0 | and false }}", "at <div 1 0>: error calling div"],
    ["{{ div 1 0 | add (mod 1 0) }}", "at <div 1 0>: error calling div"],
    ["{{ repeat -1 `x` }}", "error calling repeat: strings: negative Repeat count"],
    ["{{ duration `1µs\u2028` }}", 'time: unknown unit "\\xc2\\xb5s\\xe2\\x80\\xa8" in duration'],
    ["{{ duration `1d` }}", 'error calling duration: time: unknown unit "d" in duration "1d"'],
    ["{{ lower 1 }}", "wrong type for value; expected string; got int"],
    ["{{ lower }}", "wrong number of args for lower: want 1 got 0"],
    ["{{ eq 1 `a` }}", "error calling eq: incompatible types for comparison"],
    ["{{ index .app 9 }}", "error calling index: index out of range: 9"],
    ["{{ nil }}", "nil is not a command"],
    ["{{ now.constructor }}", "can't evaluate field constructor in type time.Time"],
    ["{{ unixToTime `12` }}", "unable to parse time '12'"],
    ["{{ regexReplaceAll `(` `x` `y` }}", "error parsing regexp: missing closing )"],
    ["{{ repeat 100000000 `x` }}", "result longer than"],
    ["{{ regexReplaceAll `((a{100}){10}){10}` `x` `y` }}", "regular expression too large"],
    ["{{ range 1000000 }}{{ end }}", "too many rounds of range"],
    [
      "{{ range .app }}{{ end }}",
      'template: line:1:9: executing "line" at <.app>: range can\'t iterate over gauge',
    ],
    [
      "{{ range upper `x` }}{{ end }}",
      'template: line:1:15: executing "line" at <`x`>: range can\'t iterate over X',
    ],
    [
      "{{ $o := fromJson .json }}{{ $o.request.method }}",
      'template: line:1:31: executing "line" at <$o.request.method>: nil pointer evaluating interface {}.method',
    ],
    ["{{ (fromJson .json).no.x }}", "nil pointer evaluating interface {}.x"],
    ["{{ index (fromJson .json) `no` `x` }}", "error calling index: index of nil pointer"],
    ["{{ index (fromJson `x`) `no` }}", "error calling index: index of untyped nil"],
    [
      "{{ define `a` }}{{ .b.c }}{{ end }}{{ template `a` . }}",
      'template: line:1:21: executing "a" at <.b.c>: can\'t evaluate field c in type string',
    ],
    [
      "{{ template `a` .app }}",
      'template: line:1:12: executing "line" at <{{template "a" .app}}>: template "a" not defined',
    ],
    ["{{ template `line` . }}", "exceeded maximum template depth (100)"],
    [
      "{{ define `a` }}{{ template `b` }}{{ template `b` }}{{ end }}".replace("`b`", "`a`") +
        "{{ define `b` }}{{ end }}{{ template `a` }}",
      "exceeded maximum template depth (100)",
    ],
  ])("%s fails on the row", (source, message) => {
    expect(() => runTemplate(source)).toThrow(message);
  });

  it.each([
    ["{{.a", "unclosed action"],
    ["{{ foo }}", 'function "foo" not defined'],
    ["{{ $x }}", 'undefined variable "$x"'],
    ["{{ if .a }}", "unexpected EOF"],
    ["{{ end }}", "unexpected {{end}}"],
    ["{{ }}", "missing value for command"],
    ["{{ 'ab' }}", "malformed character constant: 'ab'"],
    ['{{ "x }}', "unterminated quoted string"],
    ["{{ (.a }}", "unclosed left paren"],
    ["{{ .a) }}", "unexpected right paren"],
    ["{{ .a | 1 }}", "non executable command in pipeline stage 2"],
    ["{{/* x", "unclosed comment"],
    ["{{ break }}", "{{break}} outside {{range}}"],
    ["{{ 5x }}", 'unexpected "x" in operand'],
    ["{{ if .a }}{{ define `x` }}{{ end }}{{ end }}", "unexpected <define> in command"],
    ["{{ define x }}{{ end }}", 'unexpected "x" in define clause'],
    ["{{ define `x` }}", "unexpected EOF"],
    ["{{ define `x` }}{{ else }}{{ end }}", "unexpected {{else}} in define clause"],
    ["{{ template }}", 'unexpected "}}" in template clause'],
    ["{{ block `x` }}{{ end }}", "missing value for block clause"],
    [
      "{{ define `x` }}a{{ end }}{{ define `x` }}b{{ end }}",
      'template: multiple definition of template "x"',
    ],
    ["{{ define `x` }}{{ $y }}{{ end }}", 'undefined variable "$y"'],
    ["{{ range .a }}{{ block `x` . }}{{ break }}{{ end }}{{ end }}", "{{break}} outside {{range}}"],
    ["{{ # }}", "unrecognized character in action: U+0023 '#'"],
  ])("%s does not parse", (source, message) => {
    expect(() => compileTemplate(source, "line")).toThrow(TemplateSyntaxError);
    expect(() => compileTemplate(source, "line")).toThrow(`template: line:1: ${message}`);
  });

  it("refuses what is nested too deeply", () => {
    const parens = `{{ ${"(".repeat(5000)}.a${")".repeat(5000)} }}`;
    const blocks = "{{ if .a }}".repeat(5000);
    for (const source of [parens, blocks]) {
      expect(() => compileTemplate(source, "line")).toThrow("template: line:1: nested too deeply");
    }
    const json = `{{ fromJson "${"[".repeat(5000)}${"]".repeat(5000)}" }}`;
    expect(runTemplate(json)).toBe("<no value>");
  });
});
