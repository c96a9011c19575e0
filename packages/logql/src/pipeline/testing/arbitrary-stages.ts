import fc from "fast-check";
import type { LabelFilter, LineFilterOp, Stage, Unwrap } from "../../syntax/ast.js";
import { name } from "./arbitrary-rows.js";

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

/** Labels that a parser is told to make, of some paths. */
export const extractions = (paths: readonly string[]) =>
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

/** Any stage of a pipeline. */
export const stage: fc.Arbitrary<Stage> = fc.oneof(
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

/** What a metric query takes its numbers from, if from anything. */
export const unwrap: fc.Arbitrary<Unwrap | undefined> = fc.option(
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
