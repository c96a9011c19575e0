import { compileMatchers, dayNs, type Matcher } from "@skald/model";
import { evaluate } from "../engine/engine.js";
import { mergeMetricPartials } from "../engine/range.js";
import type { QueryLimits } from "../plan/budget.js";
import type {
  LeafPlan,
  LogPlan,
  LogResult,
  QueryParams,
  QueryResult,
  SeriesMatrix,
} from "../plan/plan.js";
import { planQuery } from "../plan/planner.js";
import { mergeLogPartials } from "../scan/log-rows.js";
import { startLogScan } from "../scan/log-scan.js";
import { startMetricScan } from "../scan/metric-scan.js";
import type { Expr } from "../syntax/ast.js";
import { type KnownFields, type MemoryBlock, makeBlock, type PlainRow } from "./memory-block.js";

export type { PlainRow };

/** How the rows of a test are laid out: `sources` scans, each over blocks of at most `blockRows` rows of a day. */
export interface Layout {
  readonly sources: number;
  readonly blockRows: number;
  /** Sealed blocks are sorted by stream, then time; head blocks are in the given order. */
  readonly sealed: boolean;
  /** Row numbers (of the given rows) that the scans must leave out. */
  readonly excluded?: ReadonlySet<number>;
  /** Texts whose rows every block knows. */
  readonly texts?: readonly string[] | undefined;
  /** Fields that every block has as columns. */
  readonly fields?: KnownFields | undefined;
  /** Told of every scan of a leaf. */
  readonly onScan?: (leaf: LeafPlan) => void;
}

export const oneSource: Layout = { sources: 1, blockRows: 1000, sealed: true };

/** Plans, scans, merges and evaluates a query over rows, as a querier does. */
export function runQuery(
  expr: Expr,
  rows: readonly PlainRow[],
  params: QueryParams,
  layout: Layout = oneSource,
  limits?: QueryLimits,
): QueryResult | LogResult {
  const plan = structuredClone(planQuery(expr, params, limits));
  const sources = layOut(rows, layout);
  if (plan.kind === "log") return runLog(plan, sources);
  const leaves = new Map<number, SeriesMatrix[]>();
  for (const leaf of plan.leaves) {
    const partials = sources.map((blocks) => {
      layout.onScan?.(leaf);
      return scanMetric(leaf, blocks);
    });
    leaves.set(leaf.id, mergeMetricPartials(leaf, partials));
  }
  return evaluate(plan, leaves);
}

function runLog(plan: LogPlan, sources: readonly (readonly LaidBlock[])[]): LogResult {
  // A querier goes on where an interval leaves too few of the rows that scans hold; these hold all of them.
  const scanned = plan.intervalNs > 0n ? { ...plan, limit: 1e6 } : plan;
  const partials = sources.map((blocks, source) => {
    const scan = startLogScan(scanned);
    blocks.forEach((laid, i) => {
      const { block, streamLabels } = laid.memory;
      const selection = selectionOf(laid, plan.log.matchers);
      const only = scan.narrow(block, streamLabels, selection);
      scan.addBlock(block, streamLabels, { ...selection, only }, source * 1000 + i);
    });
    return structuredClone(scan.finish());
  });
  return mergeLogPartials(plan, partials);
}

/** Scans blocks for one leaf: runs that headers cannot answer go through their block. */
export function scanMetric(leaf: LeafPlan, blocks: readonly LaidBlock[]) {
  const scan = startMetricScan(leaf);
  for (const laid of blocks) {
    const { block, streamLabels } = laid.memory;
    const { runs, excluded } = selectionOf(laid, leaf.matchers);
    const table = block.runs;
    const header = { baseNs: block.baseNs, metadataNames: block.metadataNames() };
    const left = runs.filter((run) => {
      const from = table.rowStart[run]!;
      const to = table.rowStart[run + 1]!;
      if (excluded.some((row) => row >= from && row < to)) return true;
      return !scan.addRun(streamLabels, header, {
        stream: table.stream[run]!,
        rows: to - from,
        minTime: table.minTime[run]!,
        maxTime: table.maxTime[run]!,
        lineBytes: table.lineBytes[run]!,
      });
    });
    scan.addBlock(block, streamLabels, { runs: left, excluded });
  }
  return structuredClone(scan.finish());
}

interface LaidBlock {
  readonly memory: MemoryBlock;
  readonly excluded: Uint32Array;
}

function selectionOf({ memory, excluded }: LaidBlock, matchers: readonly Matcher[]) {
  const matches = compileMatchers(matchers);
  const { count, stream } = memory.block.runs;
  const all = Uint32Array.from({ length: count }, (_, run) => run);
  return { runs: all.filter((run) => matches(memory.streamLabels(stream[run]!))), excluded };
}

/** Deals the rows to sources in turn, and cuts each source into blocks of one day. */
export function layOut(rows: readonly PlainRow[], layout: Layout): LaidBlock[][] {
  const texts = layout.texts?.map((text) => new TextEncoder().encode(text));
  const dealt = Array.from({ length: layout.sources }, (_, source) =>
    rows.map((row, i) => ({ row, i })).filter(({ i }) => i % layout.sources === source),
  );
  return dealt.map((own) => {
    const byDay = groupByDay(own);
    return [...byDay.values()].flatMap((day) => {
      const ordered = layout.sealed ? sealedOrder(day) : day;
      return chunks(ordered, layout.blockRows).map((chunk) => laidBlock(chunk, layout, texts));
    });
  });
}

type NumberedRow = { readonly row: PlainRow; readonly i: number };

function laidBlock(
  chunk: readonly NumberedRow[],
  layout: Layout,
  texts: readonly Uint8Array[] | undefined,
): LaidBlock {
  const excluded = chunk.flatMap(({ i }, place) => (layout.excluded?.has(i) ? [place] : []));
  const memory = makeBlock(
    chunk.map(({ row }) => row),
    { texts, fields: layout.fields },
  );
  return { memory, excluded: Uint32Array.from(excluded) };
}

function sealedOrder(rows: readonly NumberedRow[]): NumberedRow[] {
  const key = ({ row }: NumberedRow) => JSON.stringify(Object.entries(row.labels).sort());
  return [...rows].sort((a, b) => {
    if (key(a) !== key(b)) return key(a) < key(b) ? -1 : 1;
    return a.row.ts < b.row.ts ? -1 : a.row.ts > b.row.ts ? 1 : a.i - b.i;
  });
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  const out: T[][] = [];
  for (let from = 0; from < items.length; from += size) out.push(items.slice(from, from + size));
  return out;
}

function groupByDay(rows: readonly NumberedRow[]): Map<bigint, NumberedRow[]> {
  const byDay = new Map<bigint, NumberedRow[]>();
  for (const item of rows) {
    const day = item.row.ts / dayNs;
    byDay.set(day, [...(byDay.get(day) ?? []), item]);
  }
  return byDay;
}
