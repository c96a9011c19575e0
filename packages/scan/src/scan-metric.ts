import type { ScanOutcome, ScanPlan, ScanTask } from "@skald/contracts";
import {
  type LeafPlan,
  type LogPlan,
  type MetricScan,
  type RunHeader,
  rowErrorOf,
  startLogScan,
  startMetricScan,
} from "@skald/logql";
import type { ReadStats, RunTable } from "@skald/model";
import { type LocalRef, SlotsMissing } from "@skald/storage";
import { BlockReader } from "./block-reader.js";
import { MetricScans, type ScanPart } from "./metric-scans.js";
import { withoutRefused } from "./needle-skip.js";
import type { OpenSource, Source } from "./source/source.js";
import {
  type Candidate,
  candidateOf,
  candidatesOf,
  countRead,
  rangeOf,
  type ScanContext,
  type SourceView,
  selectionOf,
  startStats,
  viewOf,
} from "./source/view.js";

/** Runs a metric leaf over sources: rows that headers can count first, then block by block. */
export function scanMetric(
  task: ScanTask<LeafPlan, LocalRef>,
  open: OpenSource,
  context: ScanContext,
): ScanOutcome<LeafPlan> {
  const { plan } = task;
  const scans = new MetricScans(plan, context.check);
  const views = task.sources.map((scanned) => viewOf(open(scanned.ref), scanned, plan));
  const stats = startStats(views);
  for (const view of views) {
    const candidates = candidatesOf(view, rangeOf(plan), stats);
    for (const part of scans.split(view, candidates, stats)) scanPart(part, view, stats, context);
  }
  const streams = Math.max(0, ...views.map(({ streamCount }) => streamCount));
  return { partial: scans.finish(), stats, streams };
}

function scanPart(
  { plan, scan, candidates }: ScanPart,
  view: SourceView,
  stats: ReadStats,
  context: ScanContext,
): void {
  const left = uncounted(scan, view, candidates, context);
  const reader = new BlockReader(view.source, scan.needs, left, context.memory);
  try {
    for (const candidate of left) {
      context.check();
      try {
        scan.addBlock(reader.read(candidate.block), view.streams, selectionOf(view, candidate));
      } catch (error) {
        throw withAllLabels(error, { plan, view, candidate, context });
      }
      countRead(stats, view, candidate, scan.needs.lines);
    }
  } finally {
    reader.close();
  }
}

/**
 * The error of a row with all of its labels. A scan reads no more of a row than its result needs, and who reads that a
 * row is bad must find it: so its block is looked at once more.
 */
function withAllLabels(
  error: unknown,
  {
    plan,
    view,
    candidate,
    context,
  }: { plan: LeafPlan; view: SourceView; candidate: Candidate; context: ScanContext },
): unknown {
  const kind = rowErrorOf(error);
  if (kind === undefined || plan.extract === "all") return error;
  const scan = startMetricScan({ ...plan, extract: "all" }, context.check);
  const reader = new BlockReader(view.source, scan.needs, [candidate]);
  try {
    scan.addBlock(reader.read(candidate.block), view.streams, selectionOf(view, candidate));
    return error;
  } catch (again) {
    if (again instanceof SlotsMissing) return again;
    // With more labels to find, another row may fail before, or in another way.
    return rowErrorOf(again) === kind ? again : error;
  } finally {
    reader.close();
  }
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
    const header = { baseNs: source.baseNs, metadataNames: source.metadataNames(block) };
    const table = source.runs(block);
    const hasExcluded = view.excludedOf(block) !== undefined;
    const rest: number[] = [];
    for (let i = 0; i < runs.length; i++) {
      const run = runs[i]!;
      const isCounted =
        !(hasExcluded && view.excludedIn(block, run) > 0) &&
        scan.addRun(streams, header, runHeader(source, table, block, run));
      if (!isCounted) rest.push(run);
    }
    if (rest.length === runs.length) left.push(candidate);
    else if (rest.length > 0) left.push(candidateOf(block, Uint32Array.from(rest), table));
  }
  return left;
}

function runHeader(source: Source, table: RunTable, block: number, run: number): RunHeader {
  return {
    levels: () => source.levels(block, run),
    slices: () => source.slices(block, run),
    stream: table.stream[run]!,
    rows: table.rowStart[run + 1]! - table.rowStart[run]!,
    minTime: table.minTime[run]!,
    maxTime: table.maxTime[run]!,
    lineBytes: table.lineBytes[run]!,
  };
}

/** Bytes of the lines of all blocks that a scan may have to read, from headers. */
export function measureScan(
  { plan, sources }: ScanTask<ScanPlan, LocalRef>,
  open: OpenSource,
  context: Pick<ScanContext, "check">,
): number {
  const find = "log" in plan ? logBlocks(plan) : metricBlocks(plan, context);
  let bytes = 0;
  for (const scanned of sources) {
    context.check();
    const view = viewOf(open(scanned.ref), scanned, plan);
    const read = find(view, candidatesOf(view, rangeOf(plan)));
    bytes += read.reduce((sum: number, { lineBytes }: Candidate) => sum + lineBytes, 0);
  }
  return bytes;
}

type FindBlocks = (view: SourceView, candidates: Candidate[]) => Candidate[];

/** The blocks of which a scan reads the lines. */
function logBlocks(plan: LogPlan): FindBlocks {
  const { needs, formula } = startLogScan(plan);
  return (view, candidates) => (needs.lines ? withoutRefused(view, candidates, formula) : []);
}

function metricBlocks(plan: LeafPlan, context: Pick<ScanContext, "check">): FindBlocks {
  const scans = new MetricScans(plan);
  return (view, candidates) =>
    scans
      .split(view, candidates)
      .flatMap(({ scan, candidates }) =>
        scan.needs.lines ? uncounted(scan, view, candidates, context) : [],
      );
}
