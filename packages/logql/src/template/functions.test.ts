import { describe, expect, it } from "@jest/globals";
import { runTemplate } from "../testing/run-template.js";

describe("functions of templates", () => {
  it.each([
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
    [
      "{{ regexReplaceAll `(?P<v>a)|(?P<v>g)` .app `<$v>` }} {{ regexReplaceAll `a` .app `$0é$01` }}",
      "<g><a>u<g>e guge",
    ],
    ["{{ title `it's a_b é—c x.y` }} {{ lower `ΟΔΟΣ İ` }}", "It'S A_b É—c X.Y οδοσ i"],
    [
      "{{ js `\u00a0\u200b\x7f\t=` }} {{ urlencode `\ufeffa` }}",
      "\\u00A0\\u200B\x7f\\u0009\\u003D %EF%BB%BFa",
    ],
    ["{{ html nil }} {{ trunc 2.0 .app }} {{ addf }} {{ .app | }}", "&lt;no value&gt; ga 0 gauge"],
    ["{{ trunc 4 `日本` }} {{ substr 0 2 `日本` }}", "日\ufffd \ufffd\ufffd"],
    [
      "{{ b64dec `a` }}|{{ b64dec `YQ=a` }}|{{ b64dec `YWJj!` }}|{{ b64dec `YQ==x` }}|{{ b64dec `Y=` }}",
      "illegal base64 data at input byte 0|illegal base64 data at input byte 2|illegal base64 data at input byte 4|illegal base64 data at input byte 4|illegal base64 data at input byte 1",
    ],
  ])("texts: %s", (source, want) => {
    expect(runTemplate(source)).toBe(want);
  });

  it.each([
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
    ["{{ duration `8.601s` }} {{ duration `-24577ms` }}", "8.600999999999999 -24.576999999999998"],
  ])("numbers: %s", (source, want) => {
    expect(runTemplate(source)).toBe(want);
  });

  it.each([
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
    // Exact halves go to the even neighbour.
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
    ["{{ printf `%[3]*.[2]*[1]f` 12.0 2 6 }}|{{ printf `%*d` -5 42 }}|", " 12.00|42   |"],
    [
      "{{ printf `%[5]d` 1 }}|{{ printf `%[x]d` 1 }}|{{ printf `%[1` 1 }}|{{ printf `%[]d` 1 }}|{{ printf `%[2]2d` 1 2 }}",
      "%!d(BADINDEX)|%!d(BADINDEX)|%!(NOVERB)|%!d(BADINDEX)|%!d(BADINDEX)",
    ],
    [
      "{{ printf `%*d` `x` 42 }}|{{ printf `%.*d` -1 42 }}|{{ printf `%5` 1 }}|{{ printf `%9999999d` 1 }}",
      "%!(BADWIDTH)42|%!(BADPREC)42|%!(NOVERB)%!(EXTRA int=1)|%!(NOVERB)%!(EXTRA int=1)",
    ],
  ])("printf: %s", (source, want) => {
    expect(runTemplate(source)).toBe(want);
  });

  it.each([
    [
      "{{ toDate `2006` `bad` | unixEpochNanos }} {{ (toDate `2006` `bad`).UnixNano }}",
      "-6795364578871345152 -6795364578871345152",
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
  ])("times: %s", (source, want) => {
    expect(runTemplate(source)).toBe(want);
  });
});
