import { type Labels, type Matcher, makeLabels } from "@skald/model";
import type { LeafPlan } from "../plan/plan.js";
import type { SeriesMatrix } from "../plan/result.js";

/** absent_over_time: one series that is 1 wherever no series of the leaf has a sample. */
export function absentSeries(leaf: LeafPlan, found: SeriesMatrix): SeriesMatrix {
  const { pointCount } = found;
  const present = new Uint8Array(pointCount).fill(1);
  for (const row of found.present) {
    for (let p = 0; p < pointCount; p++) if (row[p] === 1) present[p] = 0;
  }
  if (!present.includes(1)) return { pointCount, labels: [], values: [], present: [] };
  const values = new Float64Array(pointCount).fill(1);
  return {
    pointCount,
    labels: [absentLabels(leaf.matchers)],
    values: [values],
    present: [present],
  };
}

/** The labels that equality matchers fix; a name that is matched twice, or in another way, is fixed by none. */
function absentLabels(matchers: readonly Matcher[]): Labels {
  const uses = new Map<string, number>();
  for (const { name } of matchers) uses.set(name, (uses.get(name) ?? 0) + 1);
  const fixed = matchers.filter(({ name, op }) => op === "=" && uses.get(name) === 1);
  return makeLabels(fixed.map(({ name, value }) => [name, value] as const));
}
