import type { SourceRef } from "@skald/model";
import { dayNs, floorDiv } from "@skald/model";
import { type Exclusions, noExclusions, type ScanPool } from "@skald/storage";

/** A source with its place in a query. */
export interface PlannedSource {
  readonly ref: SourceRef;
  /** Who answered for it; decides where its statistics are counted. */
  readonly side: "ingester" | "store";
  /** Order of arrival among the sources. */
  readonly sequence: number;
  readonly exclusions: Exclusions;
}

/** Orders sources by arrival, as far as it shows: segments by the time of their first row, then heads. */
export function orderSources(
  ingester: readonly SourceRef[],
  store: readonly SourceRef[],
): PlannedSource[] {
  const planned = [
    ...ingester.map((ref) => ({ ref, side: "ingester" as const })),
    ...store.map((ref) => ({ ref, side: "store" as const })),
  ];
  planned.sort((a, b) => compareArrival(a.ref, b.ref));
  return planned.map((source, sequence) => ({ ...source, sequence, exclusions: noExclusions }));
}

function compareArrival(a: SourceRef, b: SourceRef): number {
  if (a.kind !== b.kind) return a.kind === "head" ? 1 : -1;
  if (a.minNs !== b.minNs) return a.minNs < b.minNs ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/**
 * Finds the rows that several sources have, so that each is used once. Only sources that overlap in time and lie in
 * the same day are compared; with one writer and data in order those are few.
 */
export async function excludeDuplicates(
  sources: readonly PlannedSource[],
  scans: ScanPool,
  signal: AbortSignal,
): Promise<PlannedSource[]> {
  return Promise.all(
    sources.map(async (newer, i) => {
      const rivals = sources.slice(0, i).filter((older) => overlap(older.ref, newer.ref));
      if (rivals.length === 0) return newer;
      const found = await Promise.all(
        rivals.map((older) => scans.duplicates(older.ref, newer.ref, signal)),
      );
      return { ...newer, exclusions: unite(found) };
    }),
  );
}

function overlap(a: SourceRef, b: SourceRef): boolean {
  const sameDay = floorDiv(a.minNs, dayNs) === floorDiv(b.minNs, dayNs);
  return sameDay && a.minNs <= b.maxNs && b.minNs <= a.maxNs;
}

function unite(parts: readonly Exclusions[]): Exclusions {
  const filled = parts.filter((part) => part.blocks.length > 0);
  if (filled.length <= 1) return filled[0] ?? noExclusions;
  const byBlock = new Map<number, Set<number>>();
  for (const part of filled) {
    part.blocks.forEach((block, i) => {
      const rows = byBlock.get(block) ?? new Set<number>();
      for (const row of part.rows[i] as Uint32Array) rows.add(row);
      byBlock.set(block, rows);
    });
  }
  const blocks = Uint32Array.from(byBlock.keys()).sort();
  const rows = [...blocks].map((block) =>
    Uint32Array.from(byBlock.get(block) as Set<number>).sort(),
  );
  return { blocks, rows };
}
