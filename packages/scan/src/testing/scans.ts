import {
  groupLogRows,
  type LeafPlan,
  type LogPartial,
  type LogPlan,
  lineAt,
  type MetricPartial,
  mergeLogPartials,
  mergeMetricPartials,
} from "@skald/logql";
import { formatLabels } from "@skald/model";
import { type LocalRef, openSegmentFile } from "@skald/storage";
import { type ScanContext, ScanMemory } from "../source/block-reader.js";
import { type OpenSource, openHead, type Source, segmentSource } from "../source/source.js";
import { planOf } from "./plans.js";
import { makeDirectory, makeHead, makeSegment, row, testDayNs } from "./sources.js";

export function logPlan(...args: Parameters<typeof planOf>): LogPlan {
  const plan = planOf(...args);
  if (plan.kind !== "log") throw new Error("not a log query");
  return plan;
}

/** The only leaf of a metric query. */
export function leafOf(...args: Parameters<typeof planOf>): LeafPlan {
  const plan = planOf(...args);
  if (plan.kind !== "metric" || plan.leaves.length !== 1) throw new Error("not a single leaf");
  return plan.leaves[0] as LeafPlan;
}

/** The only leaf of an instant query at an offset from midnight, in ns. */
export function instantLeaf(query: string, at: number): LeafPlan {
  return leafOf(query, { from: at, to: at });
}

/** Rows in the order of the answer: time after midnight, stream, line. */
export function rowsOf(plan: LogPlan, partials: readonly LogPartial[]): [number, string, string][] {
  const result = mergeLogPartials(plan, partials);
  const text = new Array<string>(result.rowCount);
  for (const { labels, rows } of groupLogRows(result, "stream"))
    for (const at of rows) text[at] = formatLabels(labels);
  return Array.from(text, (stream, at) => [
    Number((result.timestamps[at] as bigint) - testDayNs),
    stream,
    Buffer.from(lineAt(result.lines, at)).toString(),
  ]);
}

/** Values at the last point by series. */
export function valuesOf(
  leaf: LeafPlan,
  partials: readonly MetricPartial[],
): Record<string, number> {
  const { labels, values } = mergeMetricPartials(leaf, partials)[0]!;
  return Object.fromEntries(
    labels.map((one, i) => [formatLabels(one), values[i]!.at(-1) as number]),
  );
}

/** A context that never cancels, with memory that was used before. */
export function contextOf(): ScanContext & { readonly memory: ScanMemory } {
  const memory = new ScanMemory();
  const taken = Array.from({ length: 4 }, () => memory.take(20_000).fill(0xff));
  for (const buffer of taken) memory.give(buffer);
  return { check: () => {}, memory };
}

/** The source, counting the blocks of which lines and timestamps were read. */
export function countReads(source: Source): { source: Source; lines: number[]; times: number[] } {
  const lines: number[] = [];
  const times: number[] = [];
  return {
    lines,
    times,
    source: {
      ...source,
      block: (number, pages, memory) => {
        const block = source.block(number, pages, memory);
        return {
          ...block,
          lines: () => {
            if (!lines.includes(number)) lines.push(number);
            return block.lines();
          },
          timestamps: () => {
            if (!times.includes(number)) times.push(number);
            return block.timestamps();
          },
        };
      },
    },
  };
}

export const ms = 1_000_000;
const filler = "x".repeat(130_000);
/** Bytes of the lines of one stream of `sampleSources`. */
export const sampleBytes = 6 * filler.length;

/**
 * The same rows as a segment and as a head: lines `even|odd <i>` with i = 0..11, the first six of stream a and the
 * others of b, each stream at 0, 10 .. 50 ms, in six blocks of two rows, with the metadata trace = t0, t1 or t2.
 */
export function sampleSources(): {
  readonly refs: readonly [string, LocalRef][];
  readonly open: OpenSource;
  readonly close: () => void;
} {
  const directory = makeDirectory();
  const rows = Array.from({ length: 12 }, (_, i) => {
    const line = `${i % 2 === 0 ? "even" : "odd"} ${i} ${filler}`;
    return row(i < 6 ? "a" : "b", (i % 6) * 10 * ms, line, { trace: `t${i % 3}` });
  });
  const segment = makeSegment(directory.path, rows, { id: "segment" });
  const opened = openSegmentFile(segment);
  const source = segmentSource(opened.segment);
  return {
    refs: [
      ["a segment", segment],
      ["a head", makeHead(rows, { id: "head", rowsPerBlock: 2 })],
    ],
    open: (ref) => (ref.kind === "head" ? openHead(ref) : source),
    close: () => {
      opened.close();
      directory.remove();
    },
  };
}

/** Row 1 of block 0, and row 0 of block 4: the second of a, and the third of b. */
export const sampleMask = {
  blocks: Uint32Array.of(0, 4),
  rows: [Uint32Array.of(1), Uint32Array.of(0)],
};
