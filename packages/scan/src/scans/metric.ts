import type { Measured, ScanOutcome, ScanPlan, ScanTask } from "@skald/contracts";
import {
  combineMetricPartials,
  type LeafPlan,
  type LogPlan,
  type MetricPartial,
  type MetricScan,
  type RunHeader,
  rowErrorOf,
  type SlicedRows,
  startLogScan,
  startMetricScan,
} from "@skald/logql";
import { emptyReadStats, type NeedleFormula, type ReadStats, type RunTable } from "@skald/model";
import { type LocalRef, SlotsMissing } from "@skald/storage";
import {
  BlockReader,
  onlyTimestamps,
  readsLines,
  type ScanContext,
} from "../source/block-reader.js";
import { type FoundBlocks, foundBlocks } from "../source/cache.js";
import type { OpenSource, Source } from "../source/source.js";
import {
  type Candidate,
  candidateOf,
  candidatesOf,
  countRead,
  type RunCounter,
  rangeOf,
  type SourceView,
  selectionOf,
  startStats,
  viewOf,
  withoutRefused,
} from "../source/view.js";

/** Runs a metric leaf over sources: first the runs that headers can count, then block by block. */
export function scanMetric(
  task: ScanTask<LeafPlan, LocalRef>,
  open: OpenSource,
  context: ScanContext,
): ScanOutcome<LeafPlan> {
  const { plan } = task;
  const scans = new MetricScans(plan, context.check);
  const views = task.sources.map((scanned) => viewOf(open(scanned.ref), scanned, plan));
  const stats = startStats(views);
  for (const [i, view] of views.entries()) {
    const findings = foundBlocks(plan, task.sources[i]!);
    const scan = scans.unfiltered;
    if (scan !== undefined) {
      // Making a candidate takes longer than counting a run.
      const isCounted = runCounter(scan, view, context);
      const candidates = candidatesOf(view, rangeOf(plan), { stats, isCounted });
      readCandidates({ plan, scan, candidates, findings }, view, stats, context);
    } else {
      for (const part of scans.split(view, stats)) {
        const left = uncounted(part.scan, view, part.candidates, context);
        stats.countedBlocks += part.candidates.length - left.length;
        const own = part.plan === plan ? findings : undefined;
        readCandidates({ ...part, candidates: left, findings: own }, view, stats, context);
      }
    }
    findings?.give(context);
  }
  const streams = Math.max(0, ...views.map(({ streamCount }) => streamCount));
  stats.postFilterLines = scans.passedRows;
  stats.linesSent = stats.postFilterLines;
  return { partial: scans.finish(), stats, streams };
}

function readCandidates(
  { plan, scan, candidates, findings }: ScanPart & { readonly findings: FoundBlocks | undefined },
  view: SourceView,
  stats: ReadStats,
  context: ScanContext,
): void {
  const { source, streams } = view;
  const isFound = (candidate: Candidate) => findings?.blocks.has(candidate.block) === true;
  const unknown = findings === undefined ? candidates : candidates.filter((one) => !isFound(one));
  if (candidates.length === 0) return;
  const reader = new BlockReader(source, scan.needs, unknown, context.memory);
  const times = new BlockReader(source, onlyTimestamps, candidates.filter(isFound), context.memory);
  const { writer } = findings ?? {};
  try {
    for (const candidate of candidates) {
      context.check();
      const { block: number } = candidate;
      const selection = selectionOf(view, candidate);
      const found = findings?.blocks.get(number);
      if (found !== undefined) {
        if (findings?.refuses(candidate, source.runs(number))) continue;
        if (scan.addFound(timedRows(source, number, times), streams, selection, found)) {
          countRead(stats, view, candidate, false);
          continue;
        }
        reader.want([candidate]);
      }
      const lines = reader.readsLines(number);
      const into = writer && { findings: writer, number };
      try {
        scan.addBlock(reader.read(number), streams, selection, into);
      } catch (error) {
        throw withAllLabels(error, { plan, view, candidate, context });
      }
      countRead(stats, view, candidate, lines);
      if (lines) stats.wantedBytes += candidate.lineBytes;
    }
  } finally {
    stats.compressedBytes += reader.readBytes + times.readBytes;
    reader.close();
    times.close();
  }
}

/** The rows of a block whose timestamps are read when they are asked for. */
function timedRows(source: Source, block: number, reader: BlockReader): SlicedRows {
  const runs = source.runs(block);
  let times: Float64Array | undefined;
  return {
    ...{ baseNs: source.baseNs, runs, rowCount: runs.rowStart[runs.count]! },
    slices: (run) => source.slices(block, run),
    timestamps: () => {
      times ??= reader.read(block).timestamps();
      return times;
    },
  };
}

/**
 * The error of a row with all of its labels. A scan reads no more of a row than its result needs, but a reader of the error has to
 * find the row: so its block is read once more.
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
    // With more labels to read, another row may fail first, or in another way.
    return rowErrorOf(again) === kind ? again : error;
  } finally {
    reader.close();
  }
}

/** Lets the scan count runs by their headers. Returns the candidates with runs that are left. */
export function uncounted(
  scan: Pick<MetricScan, "addRun">,
  view: SourceView,
  candidates: readonly Candidate[],
  context: Pick<ScanContext, "check">,
): Candidate[] {
  const isCounted = runCounter(scan, view, context);
  const left: Candidate[] = [];
  for (const candidate of candidates) {
    const { block, runs } = candidate;
    const table = view.source.runs(block);
    const rest = runs.filter((run) => !isCounted(block, run, table));
    if (rest.length === runs.length) left.push(candidate);
    else if (rest.length > 0) left.push(candidateOf(block, rest, table));
  }
  return left;
}

/** Lets the scan count runs by their headers, one by one, block by block. */
function runCounter(
  scan: Pick<MetricScan, "addRun">,
  view: SourceView,
  { check }: Pick<ScanContext, "check">,
): RunCounter {
  const { source, streams } = view;
  const header = new BlockRun(source);
  let summary = { baseNs: source.baseNs, metadataNames: noNames };
  let last = -1;
  let hasExcluded = false;
  return (block, run, table) => {
    if (block !== last) {
      check();
      last = block;
      hasExcluded = view.excludedOf(block) !== undefined;
      const metadataNames = source.metadataNames(block);
      if (metadataNames !== summary.metadataNames) summary = { ...summary, metadataNames };
    }
    if (hasExcluded && view.excludedIn(block, run) > 0) return false;
    header.show(block, run, table);
    return scan.addRun(streams, summary, header);
  };
}

const noNames: readonly string[] = [];

/** The header of one run after the other: an object per run would take longer than counting the run. */
class BlockRun implements RunHeader {
  stream = 0;
  rows = 0;
  minTime = 0;
  maxTime = 0;
  lineBytes = 0;
  #block = 0;
  #run = 0;
  readonly #source: Source;

  constructor(source: Source) {
    this.#source = source;
  }

  show(block: number, run: number, table: RunTable): void {
    this.#block = block;
    this.#run = run;
    this.stream = table.stream[run]!;
    this.rows = table.rowStart[run + 1]! - table.rowStart[run]!;
    this.minTime = table.minTime[run]!;
    this.maxTime = table.maxTime[run]!;
    this.lineBytes = table.lineBytes[run]!;
  }

  levels() {
    return this.#source.levels(this.#block, this.#run);
  }

  slices() {
    return this.#source.slices(this.#block, this.#run);
  }
}

/** What a scan may have to read, from headers and filters. */
export function measureScan(
  { plan, sources }: ScanTask<ScanPlan, LocalRef>,
  open: OpenSource,
  context: Pick<ScanContext, "check">,
): Measured {
  const find = "log" in plan ? logBlocks(plan) : metricBlocks(plan, context);
  const stats = emptyReadStats();
  let [bytes, blocksToRead] = [0, 0];
  for (const scanned of sources) {
    context.check();
    const view = viewOf(open(scanned.ref), scanned, plan);
    for (const { candidates, hasLines } of find(view, stats)) {
      blocksToRead += candidates.length;
      for (const { block, lineBytes } of candidates) if (hasLines(block)) bytes += lineBytes;
    }
  }
  return { bytes, blocks: stats.blocks, blocksToRead };
}

/** Blocks that are read, and whether their lines are. */
interface BlocksToRead {
  readonly candidates: readonly Candidate[];
  readonly hasLines: (block: number) => boolean;
}

type FindBlocks = (view: SourceView, stats: ReadStats) => readonly BlocksToRead[];

function logBlocks(plan: LogPlan): FindBlocks {
  const { needs, formula } = startLogScan(plan);
  const hasLines = () => needs.lines;
  return (view, stats) => [
    { candidates: candidatesOf(view, rangeOf(plan), { formula, stats }), hasLines },
  ];
}

function metricBlocks(plan: LeafPlan, context: Pick<ScanContext, "check">): FindBlocks {
  const scans = new MetricScans(plan);
  return (view, stats) =>
    scans.split(view, stats).map(({ scan, candidates }) => ({
      candidates: uncounted(scan, view, candidates, context),
      hasLines: (block) => readsLines(view.source, scan.needs, block),
    }));
}

/** A scan of a leaf, or of the leaf without the filters that some blocks do not need. */
interface PlannedScan {
  readonly plan: LeafPlan;
  readonly scan: MetricScan;
}

/** Blocks, and the scan for them. */
interface ScanPart extends PlannedScan {
  readonly candidates: Candidate[];
}

type Stage = LeafPlan["stages"][number];

/** For each filter that refuses rows, the filter that takes just these rows. */
const opposites = { "!=": "|=", "!~": "|~", "!>": "|>" } as const;

/**
 * The scans of a leaf. Blocks that surely lack what its first filters refuse are scanned without those filters, so that headers
 * can often count them.
 */
export class MetricScans {
  readonly #plan: LeafPlan;
  readonly #check: ScanContext["check"] | undefined;
  readonly #whole: PlannedScan;
  #rest: PlannedScan | undefined;
  /** What a row must contain for each filter to refuse it; empty unless that is known for all filters. */
  readonly #refused: readonly NeedleFormula[];

  /** Throws invalid_argument when a stage cannot be built. */
  constructor(plan: LeafPlan, check?: ScanContext["check"]) {
    this.#plan = plan;
    this.#check = check;
    this.#whole = { plan, scan: startMetricScan(plan, check) };
    this.#refused = refusedBy(plan);
  }

  /** The scan of every candidate, when filters of segments cannot rule out any. */
  get unfiltered(): MetricScan | undefined {
    const { scan } = this.#whole;
    return this.#refused.length === 0 && scan.formula === undefined ? scan : undefined;
  }

  /** The blocks of a view that may have a row that counts, by the scan that they need. */
  split(view: SourceView, stats?: ReadStats): ScanPart[] {
    const { formula } = this.#whole.scan;
    const wanted = candidatesOf(view, rangeOf(this.#plan), { stats, formula });
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

  get passedRows(): number {
    return this.#whole.scan.passedRows + (this.#rest?.scan.passedRows ?? 0);
  }

  /** Ends all scans and combines their results. */
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
