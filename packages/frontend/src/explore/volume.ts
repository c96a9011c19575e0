import type { VolumeAnswer, VolumePlan } from "@skald/contracts";
import { parseSelector } from "@skald/logql";
import {
  compareLabels,
  floorDiv,
  invalidArgument,
  type Labels,
  type Matcher,
  nsPerMs,
} from "@skald/model";
import { parseLimit, parseOrderedBounds, parseStep } from "../params/params.js";

/** What a request for volumes asks for. */
export interface VolumeParams {
  readonly plan: Omit<VolumePlan, "maxGroups">;
  readonly limit: number;
  readonly endNs: bigint;
}

/** The bytes of one group. */
export interface VolumeSeries {
  readonly labels: Labels;
  readonly total: number;
  /** By bucket, ascending; buckets without rows are not there. */
  readonly buckets: readonly number[];
  readonly bytes: readonly number[];
}

/** Parses the parameters of `index/volume`, or of `index/volume_range`. Throws invalid_argument. */
export function parseVolumeParams(
  params: URLSearchParams,
  nowNs: bigint,
  kind: "instant" | "range",
): VolumeParams {
  const matchers = parseSelector(params.get("query") ?? "", { emptyCompatible: "all" });
  const { startNs, endNs } = parseOrderedBounds(params, nowNs);
  const stepNs = kind === "range" ? parseStep(params, startNs, endNs) : undefined;
  const limit = parseLimit(params, { zeroIsFallback: true });
  const targets = (params.get("targetLabels") ?? "").split(",").filter((name) => name !== "");
  const by = groupKindOf(params);
  const range = { fromNs: startNs, toNs: endNs > startNs ? endNs : startNs + 1n };
  const names = groupNames(by, matchers, targets);
  const plan = {
    ...range,
    matchers: [...matchers, ...impliedMatchers(matchers, targets)],
    groupBy: names === undefined ? { kind: by } : { kind: by, names },
    buckets: bucketsOf(range, stepNs),
    countsStreams: false,
  };
  return { plan, limit, endNs };
}

/** The largest groups, largest first. */
export function largestSeries(answer: VolumeAnswer, limit: number): VolumeSeries[] {
  const { groups, group, bucket, bytes } = answer;
  const cells: number[][] = groups.map(() => []);
  for (let cell = 0; cell < group.length; cell++) cells[group[cell]!]!.push(cell);
  const series = groups.map((labels, at) => {
    const own = cells[at]!.sort((a, b) => bucket[a]! - bucket[b]!);
    const ofBuckets = own.map((cell) => Math.round(bytes[cell]!));
    const total = ofBuckets.reduce((sum, one) => sum + one, 0);
    return { labels, total, buckets: own.map((cell) => bucket[cell]!), bytes: ofBuckets };
  });
  return series
    .filter(({ labels, buckets }) => labels.names.length > 0 && buckets.length > 0)
    .sort((a, b) => b.total - a.total || compareLabels(a.labels, b.labels))
    .slice(0, limit);
}

/** The time that stands for a bucket: its last millisecond, or the end of the range where that is before. */
export function bucketTime({ plan: { buckets }, endNs }: VolumeParams, bucket: number): bigint {
  const end = buckets.firstNs + BigInt(bucket + 1) * buckets.stepNs;
  return end > endNs || bucket + 1 === buckets.count ? endNs : end - nsPerMs;
}

function groupKindOf(params: URLSearchParams): "series" | "names" {
  const text = params.get("aggregateBy") ?? "";
  if (text === "" || text === "series") return "series";
  if (text === "labels") return "names";
  throw invalidArgument("invalid aggregation option");
}

/** Labels to group by: those asked for, else those of the matchers, else, and where names are counted, all. */
function groupNames(
  kind: "series" | "names",
  matchers: readonly Matcher[],
  targets: readonly string[],
): readonly string[] | undefined {
  if (targets.length > 0) return [...new Set(targets)].sort();
  if (kind === "names" || matchers.length === 0) return undefined;
  return [...new Set(matchers.map(({ name }) => name))].sort();
}

/** Matchers for the labels that a client asks for: it does not want streams without them. */
function impliedMatchers(matchers: readonly Matcher[], targets: readonly string[]): Matcher[] {
  const matched = new Set(matchers.map(({ name }) => name));
  return [...new Set(targets)]
    .filter((name) => !matched.has(name))
    .map((name) => ({ name, op: "=~", value: ".+" }));
}

/** One bucket, or those at multiples of the step. */
function bucketsOf(
  { fromNs, toNs }: { readonly fromNs: bigint; readonly toNs: bigint },
  stepNs: bigint | undefined,
): VolumePlan["buckets"] {
  if (stepNs === undefined) return { firstNs: fromNs, stepNs: toNs - fromNs, count: 1 };
  const first = floorDiv(fromNs, stepNs);
  const last = floorDiv(toNs - 1n, stepNs);
  return { firstNs: first * stepNs, stepNs, count: Number(last - first) + 1 };
}
