import { type LeafPlan, type MetricPartial, type MetricScan, startMetricScan } from "@skald/logql";
import type { RunTable } from "@skald/model";
import { BlockReader } from "./block-reader.js";
import type { ScanOutcome, ScanTask } from "./scan-task.js";
import {
  type Candidate,
  candidateOf,
  candidatesOf,
  countRead,
  type ScanContext,
  type SourceView,
  selectionOf,
  spanOf,
  startStats,
  viewOf,
} from "./scan-view.js";
import type { OpenSource } from "./source.js";

/** Runs a metric leaf over sources: rows that headers can count first, then block by block. */
export function scanMetric(
  task: ScanTask<LeafPlan>,
  open: OpenSource,
  context: ScanContext,
): ScanOutcome<MetricPartial> {
  const { plan } = task;
  const scan = startMetricScan(plan);
  const views = task.sources.map((scanned) => viewOf(open(scanned.ref), scanned, plan));
  const stats = startStats(views);
  for (const view of views) {
    const left = uncounted(scan, view, candidatesOf(view, spanOf(plan), stats), context);
    const reader = new BlockReader(view.source, scan.needs, left, context.memory);
    try {
      for (const candidate of left) {
        context.check();
        scan.addBlock(reader.read(candidate.block), view.streams, selectionOf(view, candidate));
        countRead(stats, view, candidate, scan.needs.lines);
      }
    } finally {
      reader.close();
    }
  }
  const streams = Math.max(0, ...views.map(({ streamCount }) => streamCount));
  return { partial: scan.finish(), stats, streams };
}

/** Lets the scan count runs by their headers; the candidates with runs that are left. */
export function uncounted(
  scan: Pick<MetricScan, "addRun">,
  view: SourceView,
  candidates: readonly Candidate[],
  { check }: Pick<ScanContext, "check">,
): Candidate[] {
  const { source, streams } = view;
  const left: Candidate[] = [];
  for (const candidate of candidates) {
    const { block, runs } = candidate;
    check();
    const header = { baseNs: source.baseNs, metadataNames: source.block(block).metadataNames() };
    const table = source.runs(block);
    const rest = runs.filter(
      (run) =>
        view.excludedIn(block, run) > 0 || !scan.addRun(streams, header, runHeader(table, run)),
    );
    if (rest.length > 0) left.push(candidateOf(block, rest, table));
  }
  return left;
}

function runHeader(table: RunTable, run: number) {
  return {
    stream: table.stream[run] as number,
    rows: (table.rowStart[run + 1] as number) - (table.rowStart[run] as number),
    minTime: table.minTime[run] as number,
    maxTime: table.maxTime[run] as number,
    lineBytes: table.lineBytes[run] as number,
  };
}
