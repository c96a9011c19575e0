import type { Matcher } from "@skald/model";
import fc from "fast-check";
import {
  type BinaryExpr,
  type Expr,
  type Grouping,
  type LabelFilter,
  type LineFilterStage,
  type LogExpr,
  type MetricExpr,
  type RangeAggregation,
  rangeOps,
  type Stage,
  type Unwrap,
  type VectorAggregation,
  type VectorMatching,
  vectorOps,
} from "../syntax/ast.js";
import { rangeAggregationError, vectorAggregationError } from "../syntax/check.js";
import { type BinaryOp, type CompareOp, precedence } from "../syntax/operator.js";

/** Any query the parser can give; small enough to evaluate. */
export function arbitraryQuery(): fc.Arbitrary<Expr> {
  return fc.oneof(arbitraryLogQuery(), arbitraryMetricQuery());
}

function arbitraryLogQuery(): fc.Arbitrary<LogExpr> {
  return fc.record({
    kind: fc.constant("log" as const),
    matchers: arbitrarySelector(),
    stages: fc.array(arbitraryStage(), { maxLength: 5 }).map(joinStages),
  });
}

/** Leaves out line filters that the grammar would take for the matcher of a label before them: `drop a != "x"`. */
function joinStages(stages: readonly Stage[][]): Stage[] {
  const joined: Stage[] = [];
  for (const stage of stages.flat()) {
    const last = joined[joined.length - 1];
    const endsInName =
      (last?.kind === "drop" || last?.kind === "keep") && last.targets.at(-1)?.kind === "name";
    const isMatcher = stage.kind === "line_filter" && (stage.op === "!=" || stage.op === "!~");
    if (!endsInName || !isMatcher) joined.push(stage);
  }
  return joined;
}

/** Matchers of which the first asks for a label. */
function arbitrarySelector(): fc.Arbitrary<Matcher[]> {
  const first = fc.record({ name, op: fc.constant("=" as const), value: text.filter(Boolean) });
  return fc
    .tuple(first, fc.array(matcher, { maxLength: 2 }))
    .map(([head, rest]) => [head, ...rest]);
}

/** One stage, or the several that a negative line filter with alternatives stands for. */
function arbitraryStage(): fc.Arbitrary<Stage[]> {
  return fc.oneof(
    lineFilter,
    arbitraryLabelFilter().map((filter): Stage[] => [{ kind: "label_filter", filter }]),
    plainStage.map((stage) => [stage]),
  );
}

function arbitraryLabelFilter(): fc.Arbitrary<LabelFilter> {
  return fc.letrec<{ filter: LabelFilter }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 3 },
      leafFilter,
      fc.record({
        kind: fc.constantFrom("and" as const, "or" as const),
        left: tie("filter"),
        right: tie("filter"),
      }),
    ),
  })).filter;
}

function arbitraryMetricQuery(): fc.Arbitrary<MetricExpr> {
  return fc.letrec<{ metric: MetricExpr }>((tie) => ({
    metric: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      arbitraryRangeAggregation(),
      fc.double().map((value): MetricExpr => ({ kind: "literal", value })),
      fc
        .double({ min: 0, noDefaultInfinity: true, noNaN: true })
        .map((value): MetricExpr => ({ kind: "vector", value: value + 0 })),
      vectorAggregation(tie("metric")),
      binary(tie("metric")),
      fc.record({
        kind: fc.constant("label_replace" as const),
        inner: tie("metric"),
        destination: name,
        replacement: text,
        source: name,
        regex,
      }),
    ),
  })).metric;
}

function arbitraryRangeAggregation(): fc.Arbitrary<RangeAggregation> {
  const parts = fc.record({
    op: fc.constantFrom(...rangeOps),
    parameter: fc.double({ min: 0, max: 2, noNaN: true }).map(withoutMinusZero),
    log: arbitraryLogQuery(),
    unwrap,
    unwrapped: fc.boolean(),
    rangeNs: fc.bigInt(0n, 4_000_000_000n).map((ms) => ms * 1_000_000n),
    offsetNs: fc.oneof(fc.constant(0n), durationNs),
    grouping: option(grouping),
  });
  return parts.map(({ op, parameter, unwrap, unwrapped, grouping, ...rest }) => {
    const needsParameter = op === "quantile_over_time";
    const isAllowed = (isUnwrapped: boolean, grouped: boolean) =>
      rangeAggregationError(op, {
        parameter: needsParameter ? "1" : undefined,
        unwrapped: isUnwrapped,
        grouped,
      }) === undefined;
    const isUnwrapped = unwrapped ? isAllowed(true, false) : !isAllowed(false, false);
    return {
      kind: "range_aggregation" as const,
      op,
      ...rest,
      ...(needsParameter && { parameter }),
      ...(isUnwrapped && { unwrap }),
      ...(grouping !== undefined && isAllowed(isUnwrapped, true) && { grouping }),
    };
  });
}

function vectorAggregation(inner: fc.Arbitrary<MetricExpr>): fc.Arbitrary<VectorAggregation> {
  const parts = fc.record({
    op: fc.constantFrom(...vectorOps),
    parameter: fc.integer({ min: 1, max: 5 }),
    grouping: option(grouping.filter(({ without, labels }) => without || labels.length > 0)),
    inner,
  });
  return parts.map(({ op, parameter, grouping, inner }) => {
    const isAllowed = (given: number | undefined, grouped: boolean) =>
      vectorAggregationError(op, {
        parameter: given,
        parameterText: given?.toString(),
        grouped,
      }) === undefined;
    const given = isAllowed(parameter, false) ? parameter : undefined;
    return {
      kind: "vector_aggregation" as const,
      op,
      inner,
      ...(given !== undefined && { parameter: given }),
      ...(grouping !== undefined && isAllowed(given, true) && { grouping }),
    };
  });
}

/** Operators between anything but two literals, which the parser would fold. */
function binary(side: fc.Arbitrary<MetricExpr>): fc.Arbitrary<MetricExpr> {
  const parts = fc.record({
    op: fc.constantFrom(...(Object.keys(precedence) as BinaryOp[])),
    left: side,
    right: side,
    bool: fc.boolean(),
    matching: option(matching),
  });
  return parts.map(({ op, left, right, bool, matching }): MetricExpr => {
    const isSet = precedence[op] <= precedence.and;
    if (left.kind === "literal" && (isSet || right.kind === "literal")) return left;
    if (right.kind === "literal" && isSet) return left;
    const expr: BinaryExpr = { kind: "binary", op, left, right, bool };
    return matching === undefined ? expr : { ...expr, matching };
  });
}

function option<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(value, { nil: undefined });
}

function withoutMinusZero(value: number): number {
  return value + 0;
}

/** Names that are function words elsewhere are names here. */
const name = fc.constantFrom(
  ...[
    "app",
    "level",
    "status",
    "_x",
    "A9",
    "rate",
    "sum",
    "count",
    "ip",
    "bytes",
    "größe",
    "__error__",
  ],
);
const names = fc.uniqueArray(name, { maxLength: 3 });
const text = fc.oneof(
  fc.constantFrom(
    "",
    "error",
    "a b",
    "`",
    '"',
    "\\",
    "{{.x}}",
    "# no comment",
    "ü🎉",
    "\n\t\x00\u200b",
  ),
  fc.string({ unit: "binary", maxLength: 12 }),
);
const regex = fc.constantFrom(
  "",
  "a|b",
  "error|warn",
  ".*x.*",
  "5..",
  "[a-z]+\\d",
  "(?i)x",
  "a`b",
  "^$",
);
const matcher: fc.Arbitrary<Matcher> = fc.oneof(
  fc.record({ name, op: fc.constantFrom("=" as const, "!=" as const), value: text }),
  fc.record({ name, op: fc.constantFrom("=~" as const, "!~" as const), value: regex }),
);
const durationNs = fc.bigInt(-10_000_000_000_000_000n, 10_000_000_000_000_000n);
const grouping: fc.Arbitrary<Grouping> = fc.record({ without: fc.boolean(), labels: names });
const matching: fc.Arbitrary<VectorMatching> = fc
  .record({
    on: fc.boolean(),
    labels: names,
    group: option(
      fc.record({ side: fc.constantFrom("left" as const, "right" as const), include: names }),
    ),
  })
  .map(({ group, ...rest }) => (group === undefined ? rest : { ...rest, group }));
const compare = fc.constantFrom<CompareOp>("==", "!=", ">", ">=", "<", "<=");

const leafFilter: fc.Arbitrary<LabelFilter> = fc.oneof(
  fc.record({ kind: fc.constant("string" as const), matcher }),
  fc.record({
    kind: fc.constant("number" as const),
    name,
    op: compare,
    value: fc.double({ noNaN: true, noDefaultInfinity: true }),
  }),
  fc.record({ kind: fc.constant("duration" as const), name, op: compare, value: durationNs }),
  fc.record({
    kind: fc.constant("bytes" as const),
    name,
    op: compare,
    value: fc.oneof(fc.maxSafeNat(), fc.constantFrom(1000, 1024, 5e6, 1.5e9, 2 ** 63)),
  }),
  fc.record({
    kind: fc.constant("ip" as const),
    name,
    op: fc.constantFrom("==" as const, "!=" as const),
    value: fc.constantFrom("10.0.0.0/8", "::1", "1.1.1.1-1.1.1.9"),
  }),
);

const unwrap: fc.Arbitrary<Unwrap> = fc.record({
  label: name,
  conversion: fc.constantFrom("none", "duration", "duration_seconds", "bytes"),
  filters: fc.array(arbitraryLabelFilter(), { maxLength: 2 }),
});

const lineFilterValue = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant("text" as const), value: text }), weight: 4 },
  {
    arbitrary: fc.record({ kind: fc.constant("ip" as const), value: fc.constant("10.0.0.1") }),
    weight: 1,
  },
);
const lineFilter: fc.Arbitrary<LineFilterStage[]> = fc
  .tuple(
    fc.constantFrom(
      "|=" as const,
      "!=" as const,
      "|~" as const,
      "!~" as const,
      "|>" as const,
      "!>" as const,
    ),
    fc.array(lineFilterValue, { minLength: 1, maxLength: 3 }),
  )
  .map(([op, alternatives]) =>
    op.startsWith("|")
      ? [{ kind: "line_filter", op, alternatives }]
      : alternatives.map((value) => ({ kind: "line_filter", op, alternatives: [value] })),
  );

const extractions = fc.array(
  fc.record({ label: name, path: fc.constantFrom("a", "a.b[0]", '["x y"]') }),
  { maxLength: 3 },
);
const targets = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("name" as const), name }),
    fc.record({ kind: fc.constant("matcher" as const), matcher }),
  ),
  { minLength: 1, maxLength: 3 },
);
const formats = fc.uniqueArray(
  fc.oneof(
    fc.record({ kind: fc.constant("rename" as const), label: name, source: name }),
    fc.record({ kind: fc.constant("template" as const), label: name, template: text }),
  ),
  { minLength: 1, maxLength: 3, selector: (format) => format.label },
);
const plainStage: fc.Arbitrary<Stage> = fc.oneof(
  fc.record({ kind: fc.constant("json" as const), extractions }),
  fc.record({
    kind: fc.constant("logfmt" as const),
    strict: fc.boolean(),
    keepEmpty: fc.boolean(),
    extractions,
  }),
  fc.record({
    kind: fc.constant("regexp" as const),
    pattern: fc.constantFrom("(?P<method>\\w+)", "(?<a>x)|(?<b>`)"),
  }),
  fc.record({
    kind: fc.constant("pattern" as const),
    pattern: fc.constantFrom('<ip> - "<method> <_>"', "<rest>"),
  }),
  fc.record({ kind: fc.constantFrom("unpack" as const, "decolorize" as const) }),
  fc.record({ kind: fc.constant("line_format" as const), template: text }),
  fc.record({ kind: fc.constant("label_format" as const), formats }),
  fc.record({ kind: fc.constantFrom("drop" as const, "keep" as const), targets }),
);
