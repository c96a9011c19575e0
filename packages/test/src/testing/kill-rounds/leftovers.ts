import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  DayIndex,
  decodeDayIndex,
  indexesOf,
  isMergedId,
  type ObjectInfo,
  parseDayIndexKey,
  parseSegmentKey,
} from "@skald/storage";
import { filesBelow } from "../server.js";

/** The objects of a store, read without the program. */
export interface SeenStore {
  keys(): string[];
  read(key: string): Uint8Array;
}

/** The store in a data folder. */
export function folderStore(folder: string): SeenStore {
  const chunks = join(folder, "chunks");
  return {
    keys: () => filesBelow(chunks, "").filter((path) => path.startsWith("tenant=")),
    read: (key) => readFileSync(join(chunks, key)),
  };
}

/**
 * Files and objects that an idle process should have removed: unfinished files, local segments that are not in the store, marks
 * without a segment, segments that the index of their day does not name, and old indexes.
 */
export function findLeftovers(folder: string, store: SeenStore): string[] {
  return [...localLeftovers(folder), ...storeLeftovers(store)];
}

/** The steps that a killed process was in, as its files show them. */
export function stepsCutShort(folder: string, store: SeenStore): Set<string> {
  const steps = new Set<string>();
  const ingester = filesBelow(join(folder, "ingester", "segments"), "");
  if (ingester.some((path) => path.endsWith(".tmp"))) steps.add("seal");
  const isMarked = (path: string) => ingester.includes(path.replace(/\.parquet$/, ".uploaded"));
  if (ingester.some((path) => path.endsWith(".parquet") && !isMarked(path))) steps.add("upload");
  if (filesBelow(join(folder, "compactor", "merge"), "").length > 0) steps.add("merge");
  for (const { index, keys } of days(store)) {
    for (const key of keys) {
      const id = parseSegmentKey(key)?.id ?? "";
      if (isMergedId(id) && index?.knows(id) !== true) steps.add("index");
      const gone = index?.goneOf(id);
      if (gone !== undefined) steps.add(gone.by === undefined ? "drop" : "delete");
    }
  }
  return steps;
}

function localLeftovers(folder: string): string[] {
  const own = filesBelow(folder, "").filter((path) => !path.startsWith("segment-cache"));
  const names = new Set(own);
  const logs = own.filter((path) => path.endsWith(".wal"));
  const folders = new Set(own.flatMap((path) => /^chunks\/\.tmp\/[^/]+/.exec(path)?.[0] ?? []));
  const isUploaded = (path: string) =>
    /\.(parquet|uploaded)$/.test(path) &&
    ["parquet", "uploaded"].every((end) => names.has(path.replace(/[^.]+$/, end)));
  return [
    ...own.filter(
      (path) =>
        /^(ingester|compactor|chunks\/\.tmp)\//.test(path) && !kept.test(path) && !isUploaded(path),
    ),
    // The newest log is still written to.
    ...logs.slice(0, -1),
    ...(folders.size > 1 ? folders : []),
  ];
}

/** Files that a process keeps while it runs, and files that are not copies. */
const kept =
  /\/lock(\.owner)?$|^compactor\/delete-requests\.json$|^ingester\/quarantine\/|^ingester\/segments\/uploads\.marked$/;

function storeLeftovers(store: SeenStore): string[] {
  return days(store).flatMap(({ index, keys }) =>
    keys.filter((key) => {
      const segment = parseSegmentKey(key);
      if (segment !== undefined) return index?.find(segment.id) === undefined;
      return parseDayIndexKey(key)?.generation !== index?.generation;
    }),
  );
}

/** The days of all tenants, each with its newest index and its keys. */
function days(store: SeenStore): { index: DayIndex | undefined; keys: string[] }[] {
  const byDay = new Map<string, string[]>();
  for (const key of store.keys()) {
    const day = /^tenant=.*\/date=[^/]+/.exec(key)?.[0];
    if (day !== undefined) byDay.set(day, [...(byDay.get(day) ?? []), key]);
  }
  return [...byDay.values()].map((keys) => {
    const objects = keys.map((key): ObjectInfo => ({ key, sizeBytes: 0, modifiedMs: 0 }));
    const newest = indexesOf(objects)[0]?.key;
    if (newest === undefined) return { index: undefined, keys };
    return { index: new DayIndex(decodeDayIndex(newest, store.read(newest))), keys };
  });
}
