import { errorCodeOf, type SegmentLocation, type SegmentRef } from "@skald/model";
import {
  type CallOptions,
  type DayIndex,
  dayPrefix,
  dayView,
  indexesOf,
  type ObjectInfo,
  type ObjectStore,
  type OpenedDays,
  parseDayIndexKey,
  parseDayPrefix,
} from "@skald/storage";

/** The state of a day in the store. */
export interface DayState extends Table {
  readonly objects: readonly ObjectInfo[];
  readonly index: DayIndex | undefined;
  /** The newest generation, even if it was just written; 0: none. */
  readonly generation: number;
  /** Segments that are not in the index. */
  readonly young: readonly SegmentRef[];
  /** Whether the newest index is unreadable. `index` is then an older one, which may answer queries but must not delete anything. */
  readonly isDamaged: boolean;
}

interface DayReader {
  readonly store: Pick<ObjectStore, "list">;
  readonly opened: OpenedDays;
  readonly locate: (key: string) => SegmentLocation;
}

/** Lists a day and opens its newest index, or an older one if that is damaged. */
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

/** A day of a tenant. */
export interface Table {
  readonly tenant: string;
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
}

export interface TableChoice {
  /** Newest days to leave alone. */
  readonly skipNewest: number;
  /** Days after those to work on; 0: all. */
  readonly most: number;
}

/** Lists the days of all tenants in the store, the newest first. A table of the configuration is one day of all tenants. */
export async function listTables(
  store: Pick<ObjectStore, "folders">,
  { skipNewest, most }: TableChoice,
  signal: AbortSignal,
): Promise<Table[]> {
  const tables: Table[] = [];
  const visit = async (prefix: string): Promise<void> => {
    for await (const folder of store.folders(prefix, { signal })) {
      const day = parseDayPrefix(folder);
      if (day !== undefined) tables.push(day);
      else if (folder.startsWith("tenant=") && !isDayFolder(folder)) await visit(folder);
    }
  };
  await visit("");
  const days = [...new Set(tables.map(({ baseNs }) => baseNs))].sort((a, b) => (a > b ? -1 : 1));
  const chosen = new Set(days.slice(skipNewest, most === 0 ? undefined : skipNewest + most));
  return tables
    .filter(({ baseNs }) => chosen.has(baseNs))
    .sort((a, b) => (a.baseNs > b.baseNs ? -1 : a.baseNs < b.baseNs ? 1 : 0));
}

/** A folder that is named like a day but is none. It contains nothing of ours. */
function isDayFolder(folder: string): boolean {
  return /\/date=[^/]*\/$/.test(folder);
}

export function prefixOf({ tenant, baseNs }: Table): string {
  return dayPrefix(tenant, baseNs);
}
