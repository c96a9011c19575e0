import { errorCodeOf, type SegmentLocation, type SegmentRef } from "@skald/model";
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
  /** The newest index cannot be read: `index` is an older one, which is good enough to answer queries and not to delete anything. */
  readonly isDamaged: boolean;
}

export interface DayReader {
  readonly store: Pick<ObjectStore, "list">;
  readonly opened: OpenedDays;
  readonly locate: (key: string) => SegmentLocation;
}

/** Lists a day and opens its newest index, or that before it where it is damaged. */
export async function readDay(
  table: Table,
  { store, opened, locate }: DayReader,
  options: CallOptions,
): Promise<DayState> {
  const objects: ObjectInfo[] = [];
  for await (const object of store.list(prefixOf(table), options)) objects.push(object);
  const indexes = indexesOf(objects);
  const newest = indexes.slice(0, 1);
  const sound = await readable(opened, newest, options);
  const isDamaged = sound === "damaged";
  const older = isDamaged ? await readable(opened, indexes.slice(1), options) : sound;
  const index = older === "damaged" ? undefined : older;
  const generation = parseDayIndexKey(newest[0]?.key ?? "")?.generation ?? 0;
  const { young } = dayView(objects, index, locate);
  return { ...table, objects, index, generation, young, isDamaged };
}

async function readable(
  opened: OpenedDays,
  indexes: readonly ObjectInfo[],
  options: CallOptions,
): Promise<DayIndex | "damaged" | undefined> {
  try {
    return await opened.newest(indexes, options);
  } catch (error) {
    if (errorCodeOf(error) !== "internal") throw error;
    return "damaged";
  }
}
