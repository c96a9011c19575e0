import { batch, computed, effect, signal } from "@preact/signals";
import type { Level, Line } from "../api/lines.js";
import type { LineSource } from "../lines/line-list.js";
import { anchorOf } from "../lines/paging.js";
import { Selection } from "../lines/selection.js";
import { navigate, route } from "../state/explore.js";
import { answer, grown } from "./ask.js";

/** The list of Explore: what it shows, which row is current, and which line is open beside it. */

export const hidden = signal<ReadonlySet<Level>>(new Set());
export const selection = new Selection();
/** Rises when the selection changes. */
export const selected = signal(0);
export const opened = signal<Line | undefined>(undefined);
export const pins = signal<readonly Line[]>([]);
/** The tab of the panel. */
export const tab = signal<"fields" | "raw" | "context" | "similar">("fields");

/** The source of a live view, while there is one. */
export const liveSource = signal<LineSource | undefined>(undefined);

const nothing: LineSource = { count: 0, at: () => undefined };

/** What the list shows; another object for another answer. */
export const source = computed<LineSource>(() => {
  if (liveSource.value !== undefined) return withoutLevels(liveSource.value);
  return withoutLevels(answer.value?.paging ?? nothing);
});

/** Without the levels that the legend hides. */
function withoutLevels(all: LineSource): LineSource {
  const levels = hidden.value;
  if (levels.size === 0) return all;
  let known = 0;
  const places: number[] = [];
  const look = () => {
    for (; known < all.count; known++) {
      const line = all.at(known);
      if (line === undefined || !levels.has(line.level)) places.push(known);
    }
  };
  return {
    get count() {
      look();
      return places.length;
    },
    at: (index) => all.at(places[index] ?? -1),
  };
}

/** Lines that the list holds near its start, for counts and the order of fields. */
export function shownLines(max = 1000): Line[] {
  const lines: Line[] = [];
  const list = source.peek();
  for (let index = 0; index < Math.min(max, list.count); index++) {
    const line = list.at(index);
    if (line !== undefined && !line.note) lines.push(line);
  }
  return lines;
}

export function pickRow(index: number, how: { extend?: boolean; toggle?: boolean } = {}): void {
  const count = source.peek().count;
  if (count === 0) return;
  selection.pick(Math.min(count - 1, Math.max(0, index)), how);
  selected.value++;
}

/** Opens a row beside the list. */
export function openRow(index: number): void {
  const line = source.peek().at(index);
  if (line === undefined || line.note) return;
  batch(() => {
    pickRow(index);
    opened.value = line;
    navigate({ line: anchorOf(line) }, "replace");
  });
}

export function closeLine(): void {
  batch(() => {
    opened.value = undefined;
    navigate({ line: "" }, "replace");
  });
  document.querySelector<HTMLElement>(".list")?.focus();
}

/** Goes to another row; an open panel follows. */
export function moveBy(step: number, extend = false): void {
  const next = Math.max(0, selection.at + step);
  if (opened.peek() !== undefined && !extend) openRow(Math.min(source.peek().count - 1, next));
  else pickRow(next, { extend });
}

export function togglePin(line: Line | undefined): void {
  if (line === undefined) return;
  const others = pins.value.filter((one) => one !== line);
  pins.value = others.length === pins.value.length ? [...others, line].slice(-20) : others;
}

export function selectedLines(): Line[] {
  const list = source.peek();
  return selection.rows().flatMap((index) => list.at(index) ?? []);
}

/** Starts over with each answer, and opens the line that the address names. */
export function startList(): void {
  effect(() => {
    source.value;
    selection.clear();
    selected.value = selected.peek() + 1;
  });
  effect(() => {
    const found = answer.value?.paging;
    grown.value;
    const { line } = route.peek();
    if (found === undefined || line === "" || opened.peek() !== undefined) return;
    for (let index = 0; index < found.count; index++) {
      const one = found.at(index);
      if (one !== undefined && line.startsWith(one.ns) && anchorOf(one) === line) {
        queueMicrotask(() => openRow(index));
        return;
      }
    }
  });
  effect(() => {
    route.value.q;
    const { line } = route.peek();
    if (line === "") opened.value = undefined;
  });
}
