import { signal } from "@preact/signals";
import { currentTenant } from "../api/client.js";
import { onRemembered, recall, remember } from "./store.js";

export interface Saved {
  readonly name: string;
  readonly query: string;
}

const historyMax = 200;

const recallSaved = () => savedIn(recall<unknown>("saved", []));
export const saved = signal<readonly Saved[]>(recallSaved());

// The list follows what another tab saves.
onRemembered("saved", () => {
  saved.value = recallSaved();
});

/** The saved queries in what a file or the browser has, whatever it is. */
function savedIn(list: unknown): Saved[] {
  return (Array.isArray(list) ? list : []).filter(
    (one): one is Saved => typeof one?.name === "string" && typeof one?.query === "string",
  );
}

function historyKey(): string {
  return `history.${currentTenant()}`;
}

/** Queries that ran, the newest first. */
export function history(): readonly string[] {
  return recall<string[]>(historyKey(), []);
}

export function addToHistory(query: string): void {
  const others = history().filter((one) => one !== query);
  remember(historyKey(), [query, ...others].slice(0, historyMax));
}

export function save(name: string, query: string): void {
  // Another tab may have saved some since.
  const others = recallSaved().filter((one) => one.name !== name);
  setSaved([...others, { name, query }]);
}

export function unsave(query: string): void {
  setSaved(recallSaved().filter((one) => one.query !== query));
}

function setSaved(list: readonly Saved[]): void {
  saved.value = list;
  remember("saved", list);
}

/** Adds the queries of an exported file. Throws when it is no such file. */
export function importSaved(text: string): number {
  const good = savedIn(JSON.parse(text));
  if (good.length === 0) throw new Error("no saved queries in this file");
  for (const { name, query } of good) save(name, query);
  return good.length;
}

export function exportSaved(): string {
  return JSON.stringify(saved.value, undefined, 2);
}
