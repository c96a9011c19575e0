import type { MatchTask, RowFilter, RowMask, TaskSource } from "@skald/contracts";
import { type LogPlan, RowMatch } from "@skald/logql";
import type { TimeRange } from "@skald/model";
import type { LocalRef } from "@skald/storage";
import { BlockReader, type ScanContext } from "../source/block-reader.js";
import { emptyMask } from "../source/row-mask.js";
import type { OpenSource, Source } from "../source/source.js";
import {
  type Candidate,
  candidatesOf,
  flagsOf,
  rangeOf,
  type SourceView,
  selectionOf,
  viewOf,
} from "../source/view.js";

/** The rows of each filter, and the number of all rows of the source. */
export interface FoundMatches {
  readonly masks: readonly RowMask[];
  readonly rowCount: number;
}

/** Finds the rows of a source that filters name. For a filter without stages, headers tell all but the edges of its range. */
export function scanMatches(
  { sources, filters, range }: MatchTask<LocalRef>,
  open: OpenSource,
  context: ScanContext,
): FoundMatches {
  const { ref } = sources[0] as TaskSource<LocalRef>;
  const source = open(ref);
  const masks = filters.map((filter) => {
    const look = lookOf({ source, ref, filter, range }, context);
    return look === undefined ? emptyMask : matchesOf(look, context);
  });
  return { masks, rowCount: rowsOf(source) };
}

interface FilteredSource {
  readonly source: Source;
  readonly ref: LocalRef;
  readonly filter: RowFilter;
  readonly range: TimeRange | undefined;
}

/** The blocks that one filter has to look at. */
interface MatchLook {
  readonly view: SourceView;
  readonly match: RowMatch;
  readonly candidates: readonly Candidate[];
  /** True when headers alone tell which rows of a block the filter names. */
  isKnown(candidate: Candidate): boolean;
}

/** What a filter has to look at in a source; undefined when its range lies outside that of the task. */
export function lookOf(
  { source, ref, filter, range }: FilteredSource,
  { check }: Pick<ScanContext, "check">,
): MatchLook | undefined {
  const { log, nowNs, unless = [] } = filter;
  const fromNs = range === undefined || filter.fromNs > range.fromNs ? filter.fromNs : range.fromNs;
  const toNs = range === undefined || filter.toNs < range.toNs ? filter.toNs : range.toNs;
  if (fromNs >= toNs) return undefined;
  const plan: LogPlan = {
    ...{ kind: "log", log, fromNs, toNs, nowNs, limit: 0, direction: "forward", intervalNs: 0n },
  };
  const view = viewWithout(viewOf(source, { ref, sequence: 0 }, plan), unless);
  const match = new RowMatch({ log, nowNs, fromNs, toNs, check });
  const candidates = candidatesOf(view, rangeOf(plan), { formula: match.formula });
  const from = Number(fromNs - source.baseNs);
  const to = Number(toNs - source.baseNs);
  const isKnown = ({ minTime, maxTime }: Candidate) =>
    log.stages.length === 0 && minTime >= from && maxTime < to;
  return { view, match, candidates, isKnown };
}

function matchesOf({ view, match, candidates, isKnown }: MatchLook, context: ScanContext): RowMask {
  const { source } = view;
  const blocks: number[] = [];
  const rows: Uint32Array[] = [];
  const read = candidates.filter((candidate) => !isKnown(candidate));
  const reader = new BlockReader(source, match.needs, read, context.memory);
  try {
    for (const candidate of candidates) {
      context.check();
      const found = isKnown(candidate)
        ? rowsOfRuns(source, candidate)
        : match.rowsOf(reader.read(candidate.block), view.streams, selectionOf(view, candidate));
      if (found.length === 0) continue;
      blocks.push(candidate.block);
      rows.push(found);
    }
  } finally {
    reader.close();
  }
  return { blocks: Uint32Array.from(blocks), rows };
}

function viewWithout(view: SourceView, unless: NonNullable<RowFilter["unless"]>): SourceView {
  if (unless.length === 0) return view;
  const { streams } = view.source;
  const spared = new Uint8Array(streams.count);
  for (const matchers of unless) {
    const flags = flagsOf(streams.match(matchers), streams.count);
    for (let stream = 0; stream < flags.length; stream++) spared[stream]! |= flags[stream]!;
  }
  return { ...view, selected: view.selected.filter((stream) => spared[stream] === 0) };
}

function rowsOfRuns(source: Source, { block, runs, rows: count }: Candidate): Uint32Array {
  const { rowStart } = source.runs(block);
  const rows = new Uint32Array(count);
  let at = 0;
  for (const run of runs) {
    for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) rows[at++] = row;
  }
  return rows;
}

function rowsOf(source: Source): number {
  let count = 0;
  for (let block = 0; block < source.blockCount; block++) {
    const runs = source.runs(block);
    count += runs.rowStart[runs.count] ?? 0;
  }
  return count;
}
