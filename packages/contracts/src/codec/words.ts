import { rangeOps, vectorOps } from "@skald/logql";

const equalities = ["==", "!="] as const;
const comparisons = [...equalities, ">", ">=", "<", "<="] as const;
const modes = [
  ...(["count", "bytes", "sum", "min", "max", "moments"] as const),
  ...(["first", "last", "samples"] as const),
] as const;
const alertStates = ["inactive", "pending", "firing"] as const;

/** Fields that are one of a few words, as `Message.field`; any other word is refused. */
export const words = {
  "PushSource.format": ["protobuf", "json", "legacy_json", "otlp_protobuf", "otlp_json"],
  "PushSource.encoding": ["identity", "gzip", "deflate", "zstd", "lz4"],
  "OtlpRule.action": ["index_label", "structured_metadata", "drop"],
  "Matcher.op": ["=", "!=", "=~", "!~"],
  "NumberFilter.op": comparisons,
  "DurationFilter.op": comparisons,
  "IpFilter.op": equalities,
  "LineFilter.op": ["|=", "!=", "|~", "!~", "|>", "!>"],
  "Unwrap.conversion": ["none", "duration", "duration_seconds", "bytes"],
  "LogPlan.direction": ["forward", "backward"],
  "LeafPlan.mode": modes,
  "LeafPlan.extract": ["needed", "all"],
  "RangeFunction.op": rangeOps,
  "QueryLimits.onTooManySeries": ["fail", "truncate"],
  "VectorNode.op": vectorOps,
  "BinaryNode.op": ["or", "and", "unless", ...comparisons, "+", "-", "*", "/", "%", "^"],
  "MatchingGroup.side": ["left", "right"],
  "VolumeGrouping.kind": ["series", "names"],
  "MetricPartial.mode": modes,
  "ScheduledCall.method": ["query", "streams", "labels", "volumes", "explain", "changes"],
  "RuleState.state": alertStates,
  "RuleState.health": ["unknown", "ok", "err"],
  "AlertState.state": alertStates,
} as const;
