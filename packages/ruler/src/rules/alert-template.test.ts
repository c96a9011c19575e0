import { expect, it } from "@jest/globals";
import { labelsFromObject } from "@skald/model";
import { expandTemplate, parseAlertTemplate } from "./alert-template.js";

function expand(text: string, value = 12_345.678): string {
  return expandTemplate(parseAlertTemplate(text, "A"), {
    labels: labelsFromObject({ app: "web", host: "a.example.com:80" }),
    externalLabels: { cluster: "c" },
    externalUrl: "http://x",
    value,
    nowNs: 0n,
  });
}

it.each([
  [
    "{{ $labels.app }}/{{ .Labels.none }}/{{ $externalLabels.cluster }}/{{ $externalURL }}",
    "web//c/http://x",
  ],
  ["{{ $value }} {{ .Value | humanize }} {{ humanize1024 1048576.0 }}", "12345.678 12.35k 1Mi"],
  [
    "{{ humanizeDuration 93784.0 }} {{ humanizeDuration 0.0123 }} {{ humanizePercentage 0.1234 }}",
    "1d 2h 3m 4s 12.3ms 12.34%",
  ],
  ["{{ humanizeTimestamp 1435065584.128 }}", "2015-06-23 13:19:44.128 +0000 UTC"],
  [
    "{{ title .Labels.app }} {{ toUpper .Labels.app }} {{ stripPort .Labels.host }} {{ stripDomain .Labels.host }}",
    "Web WEB a.example.com a:80",
  ],
  [
    '{{ reReplaceAll "(.*)\\\\.com" "$1" "a.com" }} {{ if match "^w" .Labels.app }}yes{{ end }}',
    "a yes",
  ],
  ["{{ parseDuration `1h` }} {{ printf `%.2f` $value }}", "3600 12345.68"],
  ["{{ humanize `constructor` }}", /^<error expanding template: .*parsing "constructor"/],
  ["{{ query `x` }}", /^<error expanding template: .*cannot query/],
  ["{{ range $i, $x := .Labels }}{{ $i }}={{ $x }} {{ end }}", "app=web host=a.example.com:80 "],
])("expands %s", (text, want) => {
  if (typeof want === "string") expect(expand(text)).toBe(want);
  else expect(expand(text)).toMatch(want);
});

it("is bounded in time and text", () => {
  const twice = '{{ define "a" }}{{ template "b" . }}{{ template "b" . }}{{ end }}';
  const deep = `${twice}{{ define "b" }}${"{{ printf `%60000s` `x` }}".repeat(4)}{{ end }}{{ template "a" . }}`;
  expect(expand(deep)).toMatch(/^<error expanding template: /);
});
