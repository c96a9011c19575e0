import { describe, expect, it } from "@jest/globals";
import { Budget } from "../plan/budget.js";
import { TemplateSyntaxError } from "./error.js";
import { compileTemplate } from "./template.js";
import { mapValue } from "./value.js";

const labels = new Map([
  ["app", "gauge"],
  ["idx", "3"],
  ["value", "5"],
  ["json", '{"a":{"b":[1,2.5,"x",null,true]},"n":1e6}'],
]);
const row = {
  line: () => "the line",
  timestampNs: () => 1_710_239_400_123_456_789n,
  nowNs: () => 0n,
};
const run = (source: string) => compileTemplate(source, "line").run(mapValue(labels, ""), row);

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
    // texts
    [
      "{{ lower `ÀÉ` }} {{ upper `straße` }} {{ title `hello big-world` }}",
      "àé STRAßE Hello Big-World",
    ],
    [
      "{{ trim `  x y  ` }}|{{ trimAll `$` `$5$` }}|{{ Trim `xxaxx` `x` }}|{{ TrimLeft `xxa` `x` }}|{{ TrimRight `axx` `x` }}",
      "x y|5|a|a|a",
    ],
    ["{{ trimPrefix `a` `abc` }} {{ TrimSuffix `a.log` `.log` }}", "bc a"],
    ["{{ trunc 2 .app }} {{ trunc -2 .app }} {{ trunc 100 .app }}", "ga ge gauge"],
    ["{{ substr 1 3 .app }} {{ substr 2 -1 .app }} {{ substr -1 2 .app }}", "au uge ga"],
    ["{{ repeat 3 `ab` }}{{ indent 2 `x\ny` }}|{{ nindent 1 `z` }}", "ababab  x\n  y|\n z"],
    [
      "{{ Replace .app `g` `G` 1 }} {{ Replace .app `g` `G` -1 }} {{ replace `au` `AU` .app }} {{ replace `` `-` `ab` }}",
      "Gauge GauGe gAUge -a-b-",
    ],
    [
      "{{ contains `aug` .app }} {{ hasPrefix `ga` .app }} {{ hasSuffix `xx` .app }}",
      "true true false",
    ],
    [
      "{{ alignLeft 7 .app }}|{{ alignRight 7 .app }}|{{ alignLeft 2 .app }}|{{ alignRight 2 .app }}",
      "gauge  |  gauge|ga|ge",
    ],
    [
      "{{ regexReplaceAll `(a)(u)` .app `<$2${1}$3>` }} {{ regexReplaceAllLiteral `(a)(u)` .app `${1}` }}",
      "g<ua>ge g${1}ge",
    ],
    [
      "{{ regexReplaceAll `x*` `abc` `-` }} {{ count `[aeiou]` .app }} {{ count `x*` `ab` }}",
      "-a-b-c- 3 3",
    ],
    ["{{ regexReplaceAll `(?P<first>g)` .app `${first}!$$` }}", "g!$aug!$e"],
    ["{{ urlencode `a b&c=d/ü` }} {{ urldecode `a+b%26c%C3%BC` }}", "a+b%26c%3Dd%2F%C3%BC a b&cü"],
    [
      "{{ b64enc `ü` }} {{ b64dec `Z2F1Z2U` }} {{ b64dec `Z2F1Z2U=` }} {{ b64dec `a b` }}",
      "w7w= gauge gauge illegal base64 data at input byte 1",
    ],
    [
      "{{ default `none` .no }} {{ default `none` .app }} {{ .no | default `piped` }}",
      "none gauge piped",
    ],
    [
      "{{ html `<a&\"b'>` }} {{ js `it's` }} {{ urlquery `a b` }}",
      "&lt;a&amp;&#34;b&#39;&gt; it\\'s a+b",
    ],
    // numbers
    ["{{ add 1 2 3 }} {{ sub 5 2 }} {{ mul 2 3 4 }} {{ div -7 2 }} {{ mod -7 4 }}", "6 3 24 -3 -3"],
    ["{{ max 1 9 3 }} {{ min 4 2 8 }} {{ maxf 1.5 2.5 }} {{ minf 1.5 2.5 }}", "9 2 2.5 1.5"],
    [
      "{{ addf 0.1 0.2 }} {{ subf 5 0.5 }} {{ mulf 0.1 3 }} {{ divf 1 3 }} {{ divf .value 3 }}",
      "0.3 4.5 0.3 0.3333333333333333 1.6666666666666667",
    ],
    [
      "{{ ceil 1.2 }} {{ floor 1.8 }} {{ round 1.2345 2 }} {{ round 2.5 0 }} {{ round -1.5 0 }} {{ round 1.5 0 0.6 }}",
      "2 1 1.23 3 -2 1",
    ],
    [
      "{{ int `12` }} {{ int `5.0` }} {{ int `x` }} {{ float64 `1.5` }} {{ add .idx 1 }}",
      "12 5 0 1.5 4",
    ],
    [
      "{{ int `1.9` }} {{ int `-1.9` }} {{ int `.9` }} {{ int `7.` }} {{ int `1e3` }} {{ int `0x1f` }} {{ int `0x1.8` }} {{ int `010.9` }} {{ add `1.5` `2.5` }}",
      "1 -1 0 7 0 31 0 8 3",
    ],
    [
      "{{ bytes `1KB` }} {{ bytes `1.5MiB` }} {{ duration `1h30m` }} {{ duration_seconds `250ms` }}",
      "1000 1.572864e+06 5400 0.25",
    ],
    ["{{ printf `%s-%5s-%-5s|%q` .app .idx .idx .app }}", 'gauge-    3-3    |"gauge"'],
    [
      "{{ printf `%.2f %5.1f %d %05d %x %X %o %b %c %U %t %v %T` 5.0 2.0 3 42 255 `hi` 8 5 65 65 true 1.5 .app }}",
      "5.00   2.0 3 00042 ff 6869 10 101 A U+0041 true 1.5 string",
    ],
    [
      "{{ printf `%e %g %.3g %+d %6.2f|%-6d|%%` 1234.5678 1e21 1234.5678 3 1.005 7 }}",
      "1.234568e+03 1e+21 1.23e+03 +3   1.00|7     |%",
    ],
    [
      "{{ printf `%d %s` `x` 1 }} {{ printf `%d` }} {{ printf `x` 1 }}",
      "%!d(string=x) %!s(int=1) %!d(MISSING) x%!(EXTRA int=1)",
    ],
    [
      "{{ printf `%[2]s %[1]s` `a` `b` }}|{{ printf `%[2]s %s` `a` `b` `c` }}|{{ printf `%[1]d %[1]x %d` 10 }}",
      "b a|b c|10 a %!d(MISSING)",
    ],
    ["{{ printf `%*d|%-*d|%.*f` 5 42 4 7 2 3.14159 }}", "   42|7   |3.14"],
    [
      "{{ regexReplaceAll `(?P<v>a)|(?P<v>g)` .app `<$v>` }} {{ regexReplaceAll `a` .app `$0é$01` }}",
      "<g><a>u<g>e guge",
    ],
    ["{{ duration `8.601s` }} {{ duration `-24577ms` }}", "8.600999999999999 -24.576999999999998"],
    ["{{ title `it's a_b é—c x.y` }} {{ lower `ΟΔΟΣ İ` }}", "It'S A_b É—c X.Y οδοσ i"],
    [
      "{{ js `\u00a0\u200b\x7f\t=` }} {{ urlencode `\ufeffa` }}",
      "\\u00A0\\u200B\x7f\\u0009\\u003D %EF%BB%BFa",
    ],
    [
      "{{ toDate `2006` `bad` | unixEpochNanos }} {{ (toDate `2006` `bad`).UnixNano }}",
      "-6795364578871345152 -6795364578871345152",
    ],
    // exact halves go to the even neighbour
    [
      "{{ printf `%.0f %.0f %.2f %.1f %.0e %.3g` 0.5 2.5 0.125 12.25 2.5 0.0625 }}",
      "0 2 0.12 12.2 2e+00 0.0625",
    ],
    ["{{ printf `%.2f|%.3g|%g` 1e22 9.9996e22 1e21 }}", "10000000000000000000000.00|1e+23|1e+21"],
    ["{{ printf `%.1f %+.1f %06.1f|% d|%+v` -0.04 2.0 -1.5 7 7 }}", "-0.0 +2.0 -001.5| 7|7"],
    [
      "{{ printf `%5d|%-7s|%05d` 3.75 1 `42` }}",
      "%!d(float64= 3.75)|%!s(int=1      )|%!d(string=00042)",
    ],
    [
      '{{ printf `%s %d` (fromJson `[1,"a",null]`) (fromJson `{"k":2}`) }}',
      "[%!s(float64=1) a <nil>] map[%!d(string=k):%!d(float64=2)]",
    ],
    [
      '{{ printf `%x % x %#x %#q %+q %#v` `hi` `hi` `hi` `hi` `é` (fromJson `["a",null]`) }}',
      '6869 68 69 0x6869 `hi` "\\u00e9" []interface {}{"a", interface {}(nil)}',
    ],
    ["{{ printf `%q %q %U %#o %O` 10 39 -1 8 8 }}", "'\\n' '\\'' U+FFFFFFFFFFFFFFFF 010 0o10"],
    ["{{ html nil }} {{ trunc 2.0 .app }} {{ addf }} {{ .app | }}", "&lt;no value&gt; ga 0 gauge"],
    ["{{ trunc 4 `日本` }} {{ substr 0 2 `日本` }}", "日\ufffd \ufffd\ufffd"],
    [
      "{{ b64dec `a` }}|{{ b64dec `YQ=a` }}|{{ b64dec `YWJj!` }}|{{ b64dec `YQ==x` }}|{{ b64dec `Y=` }}",
      "illegal base64 data at input byte 0|illegal base64 data at input byte 2|illegal base64 data at input byte 4|illegal base64 data at input byte 4|illegal base64 data at input byte 1",
    ],
    ["{{ toDateInZone `2006-01-02` `No/Where` `2024-03-05` | unixEpoch }}", "1709596800"],
    [
      "{{ toDateInZone `2006-01-02 15:04` `Europe/Berlin` `2024-07-05 10:00` }}",
      "2024-07-05 10:00:00 +0200 CEST",
    ],
    ["{{ toDateInZone `15:04` `Europe/Berlin` `12:30` }}", "0000-01-01 12:30:00 +0053 LMT"],
    [
      "{{ __timestamp__.Add 1000000000 | unixEpochNanos }} {{ (__timestamp__.Truncate 1000000000).UnixNano }}",
      "1710239401123456789 1710239400000000000",
    ],
    ["{{ printf `%[3]*.[2]*[1]f` 12.0 2 6 }}|{{ printf `%*d` -5 42 }}|", " 12.00|42   |"],
    [
      "{{ printf `%[5]d` 1 }}|{{ printf `%[x]d` 1 }}|{{ printf `%[1` 1 }}|{{ printf `%[]d` 1 }}|{{ printf `%[2]2d` 1 2 }}",
      "%!d(BADINDEX)|%!d(BADINDEX)|%!(NOVERB)|%!d(BADINDEX)|%!d(BADINDEX)",
    ],
    [
      "{{ printf `%*d` `x` 42 }}|{{ printf `%.*d` -1 42 }}|{{ printf `%5` 1 }}|{{ printf `%9999999d` 1 }}",
      "%!(BADWIDTH)42|%!(BADPREC)42|%!(NOVERB)%!(EXTRA int=1)|%!(NOVERB)%!(EXTRA int=1)",
    ],
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
    // times
    ["{{ __timestamp__ | date `2006-01-02T15:04:05.000Z07:00` }}", "2024-03-12T10:30:00.123Z"],
    [
      "{{ __timestamp__ | unixEpoch }} {{ unixEpochMillis __timestamp__ }} {{ unixEpochNanos __timestamp__ }}",
      "1710239400 1710239400123 1710239400123456789",
    ],
    [
      "{{ `2024-03-12 10:30:00` | toDate `2006-01-02 15:04:05` | date `Jan 2 2006 15:04` }}",
      "Mar 12 2024 10:30",
    ],
    [
      "{{ toDateInZone `2006-01-02 15:04` `Asia/Tokyo` `2024-03-12 10:30` | unixEpoch }}",
      "1710207000",
    ],
    ["{{ `bad` | toDate `2006-01-02` | unixEpoch }}", "-62135596800"],
    [
      "{{ unixToTime `19794` | date `2006-01-02` }} {{ (unixToTime `1710239400123456`).UTC.Year }}",
      "2024-03-12 2024",
    ],
    [
      "{{ (unixToTime `1710239400`).UTC.Format `Mon, 02 Jan 06 03:04 PM -0700 MST` }}",
      "Tue, 12 Mar 24 10:30 AM +0000 UTC",
    ],
    ["{{ __timestamp__ }}", "2024-03-12 10:30:00.123456789 +0000 UTC"],
  ])("%s", (source, want) => {
    expect(run(source)).toBe(want);
  });

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
    ["{{ repeat -1 `x` }}", "error calling repeat: strings: negative Repeat count"],
    ["{{ duration `1µs\u2028` }}", 'time: unknown unit "\\xc2\\xb5s\\xe2\\x80\\xa8" in duration'],
    ["{{ duration `1d` }}", 'error calling duration: time: unknown unit "d" in duration "1d"'],
    ["{{ lower 1 }}", "wrong type for value; expected string; got int"],
    ["{{ lower }}", "wrong number of args for lower: want 1 got 0"],
    ["{{ eq 1 `a` }}", "error calling eq: incompatible types for comparison"],
    ["{{ index .app 9 }}", "error calling index: index out of range: 9"],
    ["{{ nil }}", "nil is not a command"],
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
    expect(() => run(source)).toThrow(message);
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
    expect(run(json)).toBe("<no value>");
  });

  it("bounds the work of templates that call each other twice", () => {
    const names = Array.from({ length: 40 }, (_, i) => `t${i}`);
    const source = names
      .map((name, i) => {
        const call = `{{ template "${names[i + 1]}" }}`;
        return `{{ define "${name}" }}${i < 39 ? call + call : ""}{{ end }}`;
      })
      .join("");
    expect(() => run(`${source}{{ template "t0" }}`)).toThrow("too many rounds of range");
  });

  it("bounds the work of expressions that look far ahead for each match", () => {
    const source = `{{ count "a.*b|a" (repeat 100000 "a") }}`;
    expect(() => run(source)).toThrow("too many matches for the length of the text");
    expect(run(`{{ count "a+b|a" (repeat 1000 "a") }}`)).toBe("1000");
    expect(run(`{{ count "a" (repeat 100000 "a") }}`)).toBe("100000");
  });

  it.each([
    ["an action", "{{ repeat 1000 .app }}", 10_000],
    ["what is thrown away", "{{ if repeat 1000 .app }}{{ end }}", 5000],
    ["single labels", "{{ .app }}{{ .value }}", 6],
    ["rounds", "{{ range 1000 }}{{ end }}", 1000],
  ])("counts its work: %s", (_name, source, want) => {
    const budget = new Budget();
    compileTemplate(source, "line").run(mapValue(labels, ""), { ...row, budget });
    expect(budget.steps).toBeGreaterThanOrEqual(want);
    expect(budget.steps).toBeLessThan(want + 100);
  });

  it("stops in the middle when it is told to", () => {
    const budget = new Budget({ shouldStop: () => true });
    const source = "{{ range 100000 }}{{ .a }}{{ end }}".replace(".a", "repeat 100 `a`");
    const template = compileTemplate(source, "line");
    const stopped = () => template.run(mapValue(labels, ""), { ...row, budget });
    expect(stopped).toThrow(expect.objectContaining({ code: "cancelled" }));
    expect(budget.steps).toBeLessThan(5000);
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
