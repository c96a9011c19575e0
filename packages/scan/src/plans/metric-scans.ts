import {
  combineMetricPartials,
  type LeafPlan,
  type MetricPartial,
  type MetricScan,
  startMetricScan,
} from "@skald/logql";
import type { NeedleFormula, ReadStats } from "@skald/model";
import type { Candidate, ScanContext, SourceView } from "../source/view.js";
import { withoutRefused } from "./needle-skip.js";

/** A scan of a leaf, or of what is left of it for some blocks. */
export interface PlannedScan {
  readonly plan: LeafPlan;
  readonly scan: MetricScan;
}

/** Blocks, and what scans them. */
export interface ScanPart extends PlannedScan {
  readonly candidates: Candidate[];
}

type Stage = LeafPlan["stages"][number];

/** By a filter that refuses rows, the one that takes just these. */
const opposites = { "!=": "|=", "!~": "|~", "!>": "|>" } as const;

/**
 * The scans of a leaf. Blocks that surely lack what its first filters refuse are scanned without those filters: most often headers
 * can count them.
 */
export class MetricScans {
  readonly #plan: LeafPlan;
  readonly #check: ScanContext["check"] | undefined;
  readonly #whole: PlannedScan;
  #rest: PlannedScan | undefined;
  /** What a row must hold that a filter refuses; empty where that is not known of each. */
  readonly #refused: readonly NeedleFormula[];

  /** Throws invalid_argument when a stage cannot be built. */
  constructor(plan: LeafPlan, check?: ScanContext["check"]) {
    this.#plan = plan;
    this.#check = check;
    this.#whole = { plan, scan: startMetricScan(plan, check) };
    this.#refused = refusedBy(plan);
  }

  /** What scans every candidate, where no filter of a segment has a say in it. */
  get unfiltered(): MetricScan | undefined {
    const { scan } = this.#whole;
    return this.#refused.length === 0 && scan.formula === undefined ? scan : undefined;
  }

  /** The candidates that may have a row that counts, by what has to scan them. */
  split(view: SourceView, candidates: Candidate[], stats?: ReadStats): ScanPart[] {
    const wanted = withoutRefused(view, candidates, this.#whole.scan.formula, stats);
    const held = new Set<Candidate>();
    if (this.#refused.length === 0) return [{ ...this.#whole, candidates: wanted }];
    for (const formula of this.#refused) {
      const left = wanted.filter((candidate) => !held.has(candidate));
      for (const candidate of withoutRefused(view, left, formula)) held.add(candidate);
    }
    if (held.size === wanted.length) return [{ ...this.#whole, candidates: wanted }];
    this.#rest ??= this.#startRest();
    return [
      { ...this.#whole, candidates: wanted.filter((candidate) => held.has(candidate)) },
      { ...this.#rest, candidates: wanted.filter((candidate) => !held.has(candidate)) },
    ];
  }

  /** What all scans accumulated; they cannot be used afterwards. */
  finish(): MetricPartial {
    const whole = this.#whole.scan.finish();
    if (this.#rest === undefined) return whole;
    return combineMetricPartials(this.#plan, [whole, this.#rest.scan.finish()]);
  }

  #startRest(): PlannedScan {
    const negated = new Set<Stage>(firstNegated(this.#plan));
    const stages = this.#plan.stages.filter((stage) => !negated.has(stage));
    const plan = { ...this.#plan, stages };
    return { plan, scan: startMetricScan(plan, this.#check) };
  }
}

/** The negated filters before any stage that changes a row. */
function firstNegated({ stages }: LeafPlan) {
  const other = stages.findIndex(({ kind }) => kind !== "line_filter");
  const filters = other < 0 ? stages : stages.slice(0, other);
  return filters.flatMap((stage) =>
    stage.kind === "line_filter" && stage.op in opposites ? [stage] : [],
  );
}

function refusedBy(plan: LeafPlan): NeedleFormula[] {
  // Counts can be added up whatever was counted first.
  if (plan.mode !== "count" && plan.mode !== "bytes") return [];
  const formulas = firstNegated(plan).map((stage) => {
    const op = opposites[stage.op as keyof typeof opposites];
    const { unwrap: _, ...counted } = plan;
    return startMetricScan({ ...counted, stages: [{ ...stage, op }] }).formula;
  });
  const known = formulas.filter((formula) => formula !== undefined);
  return known.length === formulas.length ? known : [];
}
