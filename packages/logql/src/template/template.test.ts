import { describe, expect, it } from "@jest/globals";
import { runTemplate } from "../testing/run-template.js";
import { compileTemplate } from "./template.js";

describe("templates", () => {
  it.each([
    // syntax
    ["{{ .value }}{{- .idx -}} x", "53x"],
    ["a {{- /* comment */ -}} b", "ab"],
    ["{{/* c */}}x", "x"],
    ['{{ `raw "q"` }}{{ "esc\\t\\u00e9" }}{{ \'a\' }}', 'raw "q"esc\té97'],
    ["{{ 1.0 }} {{ 1e6 }} {{ 0x1f }} {{ 1.5e3 }} {{ 1_000 }} {{ -3 }}", "1 1e+06 31 1500 1000 -3"],
    ["{{ . }}", 'map[app:gauge idx:3 json:{"a":{"b":[1,2.5,"x",null,true]},"n":1e6} value:5]'],
    [
      "{{ $.app }}{{ $x := .idx }}{{ $x }}{{ with .app }}{{ . }}{{ $.idx }}{{ end }}",
      "gauge3gauge3",
    ],
    ["{{ (print .app .idx) | len }}", "6"],
    ["{{ __line__ }} {{ __line__ | len }}", "the line 8"],
    // control
    ["{{ if eq .app `gauge` }}yes{{ else }}no{{ end }}", "yes"],
    ["{{ if .no }}a{{ else if .idx }}b{{ else }}c{{ end }}", "b"],
    ["{{ with .no }}a{{ else }}b{{ end }}", "b"],
    ["{{ range $k, $v := fromJson `[1,2,3]` }}{{ $k }}={{ $v }} {{ end }}", "0=1 1=2 2=3 "],
    ["{{ range fromJson `[]` }}x{{ else }}none{{ end }}", "none"],
    ['{{ range $k, $v := fromJson `{"b":1,"a":2}` }}{{ $k }}{{ $v }}{{ end }}', "a2b1"],
    [
      "{{ range $i, $v := fromJson `[1,2,3]` }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ if eq $i 2 }}{{ break }}{{ end }}{{ $v }}{{ end }}",
      "1",
    ],
    ["{{ range 3 }}{{ . }}{{ end }}", "012"],
    ["{{ $s := `a` }}{{ if true }}{{ $s = `b` }}{{ end }}{{ $s }}", "b"],
    // comparison
    [
      "{{ eq .idx `1` `2` `3` }} {{ ne .app `x` }} {{ lt 1 2 }} {{ ge 1.5 1.5 }} {{ gt `b` `a` }}",
      "true true true true true",
    ],
    ["{{ `x` | or false }} {{ `x` | or 1 }} {{ 0 | and 1 }} {{ 1 | and 0 }}", "x 1 0 0"],
    ["{{ and true false }} {{ or `` `b` }} {{ not true }} {{ and 1 0 2 }}", "false b false 0"],
    // values
    ["{{ index .app 0 }} {{ slice .app 1 3 }} {{ len .app }}", "103 au 5"],
    [
      "{{ $j := fromJson .json }}{{ $j.a.b }} {{ index $j.a.b 1 }} {{ $j.n }} {{ $j.none }}",
      "[1 2.5 x <nil> true] 2.5 1e+06 <no value>",
    ],
    [
      "{{ $j := fromJson .json }}{{ $n := $j.none }}{{ $n.x }}{{ with fromJson `x` }}{{ else }}-{{ end }}{{ (fromJson `x`).y }}",
      "<no value>-<no value>",
    ],
    ["{{ (fromJson .json).a }}", "map[b:[1 2.5 x <nil> true]]"],
    ["{{ index (fromJson .json) `n` }}", "1e+06"],
    ["{{ fromJson `not json` }}", "<no value>"],
    ["{{ print .app .idx 1 2 true }} {{ println `x` 1 }}", "gauge31 2 true x 1\n"],
    // templates
    ["{{ define `a` }}<{{ . }}>{{ end }}{{ template `a` .app }}{{ template `a` 1 }}", "<gauge><1>"],
    ["{{ template `a` . }}{{ define `a` }}{{ .app }}{{ $.idx }}{{ end }}", "gauge3"],
    ["{{ define `a` }}[{{ . }}]{{ end }}{{ template `a` }}", "[<no value>]"],
    ["{{ block `b` .app }}({{ . }}){{ end }}{{ template `b` .idx }}", "(gauge)(3)"],
    ["{{ define `a` }}{{ end }} {{ define `a` }}x{{ end }}{{ template `a` }}", " x"],
    [
      "{{ define `f` }}{{ if gt . 0 }}{{ . }}{{ template `f` (sub . 1) }}{{ end }}{{ end }}{{ template `f` 5 }}",
      "54321",
    ],
    ["{{ $x := 1 }}{{ define `a` }}{{ $x := 2 }}{{ $x }}{{ end }}{{ template `a` }}{{ $x }}", "21"],
    [
      "{{ range 3 }}{{ template `a` . }}{{ end }}{{ define `a` }}{{ range 9 }}{{ . }}{{ break }}{{ end }}{{ . }}{{ end }}",
      "000102",
    ],
  ])("%s", (source, want) => {
    expect(runTemplate(source)).toBe(want);
  });

  it("knows what it looks at", () => {
    const of = (source: string) => {
      const { labels: names, usesLine, usesTimestamp, canFail } = compileTemplate(source, "line");
      return [names, usesLine, usesTimestamp, canFail];
    };
    expect(of("{{.a}} {{.b}}")).toEqual([["a", "b"], false, false, false]);
    expect(of("{{ if .a.x }}{{ $.c }}{{ end }}")).toEqual([["a", "c"], false, false, true]);
    expect(of("{{ __line__ }}{{ date `2006` __timestamp__ }}")).toEqual([[], true, true, true]);
    expect(of("{{ index . .a }}")[0]).toBe("all");
    expect(of("{{ define `x` }}{{ __line__ }}{{ .b }}{{ end }}{{ template `x` .a }}")).toEqual([
      ["b", "a"],
      true,
      false,
      true,
    ]);
  });
});
