import type { ScanPlan, ScanSource } from "@skald/contracts";
import { FindingsWriter, FoundBlock, findingsKey } from "@skald/logql";
import type { RunTable, SegmentRef } from "@skald/model";
import type { LocalRef } from "@skald/storage";
import type { ScanContext } from "../source/block-reader.js";
import { type ImagedRef, placeOf } from "../source/cache.js";
import type { Candidate } from "../source/view.js";

/** The findings of a source; undefined where rows may still be added, or have a label that a query gives them. */
export function foundBlocks(
  plan: ScanPlan,
  { ref, tenantLabel }: ScanSource<LocalRef & Pick<ImagedRef, "findings">>,
): FoundBlocks | undefined {
  if (ref.kind === "head" || tenantLabel !== undefined || findingsKey(plan) === undefined)
    return undefined;
  return new FoundBlocks(ref);
}

/** What is known of the blocks of a segment for the stages of a scan, and what the scan finds. */
export class FoundBlocks {
  readonly blocks = new Map<number, FoundBlock>();
  readonly writer = new FindingsWriter();
  readonly #ref: SegmentRef;

  constructor(ref: Pick<ImagedRef, "findings"> & SegmentRef) {
    this.#ref = ref;
    for (const findings of ref.findings ?? []) {
      findings.blocks.forEach((block, at) => {
        this.blocks.set(block, new FoundBlock(findings, at));
      });
    }
  }

  /** Whether no row of a candidate passes the stages. */
  refuses({ block, runs }: Candidate, { rowStart }: RunTable): boolean {
    const found = this.blocks.get(block);
    if (found === undefined) return false;
    return runs.every((run) => found.refuses(rowStart[run]!, rowStart[run + 1]!));
  }

  give({ onFindings }: ScanContext): void {
    const findings = this.writer.finish();
    if (findings !== undefined) onFindings?.(placeOf(this.#ref), findings);
  }
}
