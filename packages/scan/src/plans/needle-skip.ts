import { allOf, anyOf, type NeedleFormula, type ReadStats } from "@skald/model";
import { isTenantLabel } from "../source/tenant-label.js";
import type { Candidate, SourceView } from "../source/view.js";

/** The candidates without the blocks that the filters of the segment refuse: no row of those can pass. */
export function withoutRefused(
  { source }: Pick<SourceView, "source">,
  candidates: Candidate[],
  formula: NeedleFormula | undefined,
  stats?: ReadStats,
): Candidate[] {
  // nothing is known of the blocks of a head
  if (formula === undefined || candidates.length === 0 || source.kind === "head") return candidates;
  const isLabel = (name: string) => isTenantLabel(name) || source.streams.names.includes(name);
  const own = ownFormula(formula, isLabel);
  if (own === undefined) return candidates;
  const wanted = new Uint8Array(source.blockCount);
  for (const { block } of candidates) wanted[block] = 1;
  if (!source.refuse(own, wanted)) return candidates;
  const left = candidates.filter(({ block }) => wanted[block] === 1);
  if (stats !== undefined) {
    stats.filteredBlocks += candidates.length;
    stats.refusedBlocks += candidates.length - left.length;
  }
  return left;
}

/** What is left of a formula when a label of a stream stands before metadata of the same name. */
function ownFormula(
  formula: NeedleFormula,
  isLabel: (name: string) => boolean,
): NeedleFormula | undefined {
  switch (formula.kind) {
    case "all":
      return allOf(formula.of.map((part) => ownFormula(part, isLabel)));
    case "any":
      return anyOf(formula.of.map((part) => ownFormula(part, isLabel)));
    case "value":
      return isLabel(formula.name) ? undefined : formula;
    case "text":
      return formula;
  }
}
