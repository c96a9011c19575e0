import type {
  Extraction,
  Grouping,
  LabelFilter,
  LabelFormat,
  LabelTarget,
  LineFilterValue,
  LogExpr,
  Stage,
  Unwrap,
} from "@skald/logql";
import type { Matcher } from "@skald/model";
import {
  bool,
  double,
  empty,
  field,
  int64,
  type Member,
  type MessageCodec,
  mapped,
  message,
  oneOf,
  repeated,
  text,
  union,
} from "@skald/transport/protobuf";
import { type Flat, tree } from "./tree.js";

export const matcher: MessageCodec<Matcher> = message<Matcher>({
  name: field(1, text),
  op: field(2, oneOf(["=", "!=", "=~", "!~"])),
  value: field(3, text),
});

const compareOp = oneOf(["==", "!=", ">", ">=", "<", "<="]);

type FlatFilter = Flat<LabelFilter>;

const labelFilter: MessageCodec<LabelFilter> = tree<LabelFilter>(
  union<FlatFilter>({
    and: [1, empty],
    or: [2, empty],
    string: [3, message<Member<FlatFilter, "string">>({ matcher: field(1, matcher) })],
    number: [4, numberFilter()],
    duration: [
      5,
      message<Member<FlatFilter, "duration">>({
        name: field(1, text),
        op: field(2, compareOp),
        value: field(3, int64),
      }),
    ],
    bytes: [6, numberFilter()],
    ip: [
      7,
      message<Member<FlatFilter, "ip">>({
        name: field(1, text),
        op: field(2, oneOf(["==", "!="])),
        value: field(3, text),
      }),
    ],
  }),
  { and: ["left", "right"], or: ["left", "right"] },
);

function numberFilter() {
  return message<Member<FlatFilter, "number">>({
    name: field(1, text),
    op: field(2, compareOp),
    value: field(3, double),
  });
}

const lineFilterValue: MessageCodec<LineFilterValue> = union<LineFilterValue>({
  text: [1, message<Member<LineFilterValue, "text">>({ value: field(1, text) })],
  ip: [2, message<Member<LineFilterValue, "ip">>({ value: field(1, text) })],
});

const extraction: MessageCodec<Extraction> = message<Extraction>({
  label: field(1, text),
  path: field(2, text),
});

const labelFormat: MessageCodec<LabelFormat> = union<LabelFormat>({
  rename: [
    1,
    message<Member<LabelFormat, "rename">>({ label: field(1, text), source: field(2, text) }),
  ],
  template: [
    2,
    message<Member<LabelFormat, "template">>({ label: field(1, text), template: field(2, text) }),
  ],
});

const labelTarget: MessageCodec<LabelTarget> = union<LabelTarget>({
  name: [1, message<Member<LabelTarget, "name">>({ name: field(1, text) })],
  matcher: [2, message<Member<LabelTarget, "matcher">>({ matcher: field(1, matcher) })],
});

const targets = message<Member<Stage, "drop">>({ targets: repeated(1, labelTarget) });
const pattern = message<Member<Stage, "regexp">>({ pattern: field(1, text) });

/** A stage of a query. */
export const stage: MessageCodec<Stage> = union<Stage>({
  line_filter: [
    1,
    message<Member<Stage, "line_filter">>({
      op: field(1, oneOf(["|=", "!=", "|~", "!~", "|>", "!>"])),
      alternatives: repeated(2, lineFilterValue),
    }),
  ],
  label_filter: [2, message<Member<Stage, "label_filter">>({ filter: field(1, labelFilter) })],
  json: [3, message<Member<Stage, "json">>({ extractions: repeated(1, extraction) })],
  logfmt: [
    4,
    message<Member<Stage, "logfmt">>({
      strict: field(1, bool),
      keepEmpty: field(2, bool),
      extractions: repeated(3, extraction),
    }),
  ],
  regexp: [5, pattern],
  pattern: [6, pattern],
  unpack: [7, empty],
  decolorize: [8, empty],
  line_format: [9, message<Member<Stage, "line_format">>({ template: field(1, text) })],
  label_format: [10, message<Member<Stage, "label_format">>({ formats: repeated(1, labelFormat) })],
  drop: [11, targets],
  keep: [12, targets],
});

export const logExpr: MessageCodec<LogExpr> = mapped(
  message<Omit<LogExpr, "kind">>({ matchers: repeated(1, matcher), stages: repeated(2, stage) }),
  (log) => log,
  (log) => ({ kind: "log", ...log }),
);

export const unwrap: MessageCodec<Unwrap> = message<Unwrap>({
  label: field(1, text),
  conversion: field(2, oneOf(["none", "duration", "duration_seconds", "bytes"])),
  filters: repeated(3, labelFilter),
});

export const grouping: MessageCodec<Grouping> = message<Grouping>({
  without: field(1, bool),
  labels: repeated(2, text),
});
