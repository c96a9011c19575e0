import {
  type LeafPlan,
  type LogPlan,
  type MetricPlan,
  type Plan,
  type PlanNode,
  type Points,
  type QueryLimits,
  type RangeFunction,
  rangeOps,
  type Shard,
  type VectorMatching,
  vectorOps,
  type Windows,
} from "@skald/logql";
import {
  bool,
  double,
  field,
  int64,
  type Member,
  type MessageCodec,
  mapped,
  message,
  oneOf,
  optional,
  repeated,
  text,
  uint,
  union,
} from "@skald/transport/protobuf";
import type { ScanPlan } from "../../scan.js";
import { grouping, logExpr, matcher, stage, unwrap } from "./stages.js";
import { type Flat, tree } from "./tree.js";

const shard: MessageCodec<Shard> = message<Shard>(
  { index: field(1, uint), count: field(2, uint) },
  ({ index, count }) => (index < count ? undefined : "a shard is none of its number"),
);

export const logPlan: MessageCodec<LogPlan> = mapped(
  message<Omit<LogPlan, "kind">>({
    log: field(1, logExpr),
    fromNs: field(2, int64),
    toNs: field(3, int64),
    shard: optional(4, shard),
    limit: field(5, double),
    direction: field(6, oneOf(["forward", "backward"])),
    intervalNs: field(7, int64),
    nowNs: field(8, int64),
    maxLineBytes: optional(9, double),
  }),
  (plan) => plan,
  (plan) => ({ kind: "log", ...plan }),
);

const windows: MessageCodec<Windows> = message<Windows>({
  startNs: field(1, int64),
  stepNs: field(2, int64),
  count: field(3, uint),
  rangeNs: field(4, int64),
});

const rangeFunction: MessageCodec<RangeFunction> = message<RangeFunction>({
  op: field(1, oneOf(rangeOps)),
  parameter: optional(2, double),
});

export const leafPlan: MessageCodec<LeafPlan> = message<LeafPlan>({
  id: field(1, uint),
  matchers: repeated(2, matcher),
  stages: repeated(3, stage),
  unwrap: optional(4, unwrap),
  mode: field(
    5,
    oneOf(["count", "bytes", "sum", "min", "max", "moments", "first", "last", "samples"]),
  ),
  functions: repeated(6, rangeFunction),
  windows: field(7, windows),
  grouping: optional(8, grouping),
  extract: field(9, oneOf(["needed", "all"])),
  fromNs: field(10, int64),
  toNs: field(11, int64),
  shard: optional(12, shard),
  nowNs: field(13, int64),
  maxSeries: field(14, double),
  maxCells: field(15, double),
});

type WrappedPlan =
  | { readonly kind: "log"; readonly plan: LogPlan }
  | { readonly kind: "leaf"; readonly plan: LeafPlan };

/** What a scan can run. */
export const scanPlan: MessageCodec<ScanPlan> = mapped(
  union<WrappedPlan>({
    log: [1, message<Member<WrappedPlan, "log">>({ plan: field(1, logPlan) })],
    leaf: [2, message<Member<WrappedPlan, "leaf">>({ plan: field(1, leafPlan) })],
  }),
  (plan): WrappedPlan => ("kind" in plan ? { kind: "log", plan } : { kind: "leaf", plan }),
  ({ plan }): ScanPlan => plan,
);

type FlatNode = Flat<PlanNode>;

const matching: MessageCodec<VectorMatching> = message<VectorMatching>({
  on: field(1, bool),
  labels: repeated(2, text),
  group: optional(
    3,
    message<NonNullable<VectorMatching["group"]>>({
      side: field(1, oneOf(["left", "right"])),
      include: repeated(2, text),
    }),
  ),
});

const binaryOps = [
  "or",
  "and",
  "unless",
  "==",
  "!=",
  ">",
  ">=",
  "<",
  "<=",
  "+",
  "-",
  "*",
  "/",
  "%",
  "^",
] as const;

const literal = message<Member<FlatNode, "literal">>({ value: field(1, double) });

const planNode: MessageCodec<PlanNode> = tree<PlanNode>(
  union<FlatNode>({
    leaf: [
      1,
      message<Member<FlatNode, "leaf">>({ leaf: field(1, uint), function: field(2, uint) }),
    ],
    vector_aggregation: [
      2,
      message<Member<FlatNode, "vector_aggregation">>({
        op: field(1, oneOf(vectorOps)),
        parameter: optional(2, double),
        grouping: optional(3, grouping),
      }),
    ],
    binary: [
      3,
      message<Member<FlatNode, "binary">>({
        op: field(1, oneOf(binaryOps)),
        bool: field(2, bool),
        matching: optional(3, matching),
      }),
    ],
    label_replace: [
      4,
      message<Member<FlatNode, "label_replace">>({
        destination: field(1, text),
        replacement: field(2, text),
        source: field(3, text),
        regex: field(4, text),
      }),
    ],
    literal: [5, literal],
    vector: [6, literal],
  }),
  { vector_aggregation: ["inner"], label_replace: ["inner"], binary: ["left", "right"] },
);

export const points: MessageCodec<Points> = message<Points>({
  startNs: field(1, int64),
  stepNs: field(2, int64),
  count: field(3, uint),
});

const queryLimits: MessageCodec<QueryLimits> = message<QueryLimits>({
  maxSeries: field(1, double),
  onTooManySeries: field(2, oneOf(["fail", "truncate"])),
  maxInnerSeries: field(3, double),
  maxCells: field(4, double),
});

/** How a query is answered. */
export const plan: MessageCodec<Plan> = mapped(
  union<WrappedQuery>({
    log: [1, message<Member<WrappedQuery, "log">>({ plan: field(1, logPlan) })],
    metric: [
      2,
      message<Member<WrappedQuery, "metric">>(
        {
          root: field(1, planNode),
          leaves: repeated(2, leafPlan),
          points: field(3, points),
          instant: field(4, bool),
          limits: field(5, queryLimits),
        },
        problemOfPlan,
      ),
    ],
  }),
  (given): WrappedQuery => (given.kind === "log" ? { kind: "log", plan: given } : given),
  (given): Plan => (given.kind === "log" ? given.plan : given),
);

type WrappedQuery = { readonly kind: "log"; readonly plan: LogPlan } | MetricPlan;

/** A node that names a leaf that is not there would be found in the middle of the query. */
function problemOfPlan({ root, leaves }: Pick<MetricPlan, "root" | "leaves">): string | undefined {
  const open: PlanNode[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.kind === "leaf") {
      if (leaves[node.leaf]?.functions[node.function] === undefined) return "a plan lacks a leaf";
    } else if (node.kind === "binary") open.push(node.left, node.right);
    else if ("inner" in node) open.push(node.inner);
  }
  return undefined;
}
