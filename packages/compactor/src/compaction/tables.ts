import { dayPrefix, type ObjectStore, parseDayPrefix } from "@skald/storage";

/** A day of a tenant. */
export interface Table {
  readonly tenant: string;
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
}

export interface TableChoice {
  /** Newest days that are left alone. */
  readonly skipNewest: number;
  /** Days after those that are looked at; 0: all. */
  readonly most: number;
}

/** The days of all tenants that the store has something of, the newest first. A table of the configuration is one day of all. */
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

/** One that no day is of, yet named like it: nothing of ours is below it. */
function isDayFolder(folder: string): boolean {
  return /\/date=[^/]*\/$/.test(folder);
}

export function prefixOf({ tenant, baseNs }: Table): string {
  return dayPrefix(tenant, baseNs);
}
