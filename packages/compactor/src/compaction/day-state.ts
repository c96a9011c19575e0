import type { SegmentLocation, SegmentRef } from "@skald/model";
import {
  type CallOptions,
  type DayIndex,
  dayView,
  indexesOf,
  type ObjectInfo,
  type ObjectStore,
  type OpenedDays,
  parseDayIndexKey,
} from "@skald/storage";
import { prefixOf, type Table } from "./tables.js";

/** A day as the store has it. */
export interface DayState extends Table {
  readonly objects: readonly ObjectInfo[];
  readonly index: DayIndex | undefined;
  /** The newest generation, also of a day whose index was only just written; 0: none. */
  readonly generation: number;
  /** Segments that the index does not know. */
  readonly young: readonly SegmentRef[];
}

export interface DayReader {
  readonly store: Pick<ObjectStore, "list">;
  readonly opened: OpenedDays;
  readonly locate: (key: string) => SegmentLocation;
}

/**
 * Lists a day and opens its newest index. Throws `internal` when that is damaged: what the one before it says is good enough to
 * answer queries, and not to delete anything.
 */
export async function readDay(
  table: Table,
  { store, opened, locate }: DayReader,
  options: CallOptions,
): Promise<DayState> {
  const objects: ObjectInfo[] = [];
  for await (const object of store.list(prefixOf(table), options)) objects.push(object);
  const newest = indexesOf(objects).slice(0, 1);
  const index = await opened.newest(newest, options);
  const generation = parseDayIndexKey(newest[0]?.key ?? "")?.generation ?? 0;
  const { young } = dayView(objects, index, locate);
  return { ...table, objects, index, generation, young };
}
