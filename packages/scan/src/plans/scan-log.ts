import type { ScanOutcome, ScanTask } from "@skald/contracts";
import { type LogPlan, type LogScan, startLogScan } from "@skald/logql";
import type { ReadStats } from "@skald/model";
import type { LocalRef } from "@skald/storage";
import type { OpenSource } from "../source/source.js";
import {
  candidatesOf,
  countRead,
  rangeOf,
  type ScanContext,
  type SourceView,
  selectionOf,
  startStats,
  viewOf,
} from "../source/view.js";
import { BlockReader } from "./block-reader.js";
import { boundPlan, narrowToBest } from "./limit-pushdown.js";
import { withoutRefused } from "./needle-skip.js";

/** Sequence numbers of rows are those of sources times this, plus the block. */
const maxBlocksPerSource = 2 ** 24;

/**
 * Runs a log plan over sources: of each the blocks with the best times first, until no block can hold a row better
 * than the worst one kept.
 */
export function scanLog(
  task: ScanTask<LogPlan, LocalRef>,
  open: OpenSource,
  context: ScanContext,
): ScanOutcome<LogPlan> {
  const views = task.sources.map((scanned) => viewOf(open(scanned.ref), scanned, task.plan));
  const plan = narrowToBest(boundPlan(task.plan, task.boundNs), views, context);
  const scan = startLogScan(plan, context.check);
  const stats = startStats(views);
  for (const view of views) scanView(view, { scan, plan, stats, context });
  const partial = scan.finish();
  const streams = Math.max(0, ...views.map(({ streamCount }) => streamCount));
  return { partial, stats, streams };
}

interface LogRun {
  readonly scan: LogScan;
  readonly plan: LogPlan;
  readonly stats: ReadStats;
  readonly context: ScanContext;
}

function scanView(view: SourceView, { scan, plan, stats, context }: LogRun): void {
  const { source, sequence } = view;
  const backward = plan.direction === "backward";
  const candidates = candidatesOf(view, rangeOf(plan), stats);
  const ordered = withoutRefused(view, candidates, scan.formula, stats).sort((a, b) =>
    backward ? b.maxTime - a.maxTime : a.minTime - b.minTime,
  );
  const reader = new BlockReader(source, scan.needs, ordered, context.memory);
  try {
    for (const candidate of ordered) {
      const best = source.baseNs + BigInt(backward ? candidate.maxTime : candidate.minTime);
      const worst = scan.worstTime();
      if (worst !== undefined && (backward ? best < worst : best > worst)) break;
      context.check();
      const block = reader.read(candidate.block);
      const rank = sequence * maxBlocksPerSource + candidate.block;
      scan.addBlock(block, view.streams, selectionOf(view, candidate), rank);
      countRead(stats, view, candidate, scan.needs.lines);
    }
  } finally {
    reader.close();
  }
}
