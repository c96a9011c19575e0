import { signal } from "@preact/signals";
import { graphBy, shareLink, turnOrder, zoomOut } from "../answer/clicks.js";
import {
  closeLine,
  moveBy,
  opened,
  openRow,
  pickRow,
  selectedLines,
  selection,
  source,
  tab,
  togglePin,
} from "../answer/list-state.js";
import { clearLive, resumeLive, toggleLive } from "../answer/live.js";
import { live } from "../answer/live-state.js";
import { sheetOpen } from "../answer/panel-state.js";
import { copyText } from "../lines/selection.js";
import { copy } from "../parts/toast.js";
import { navigate, raw, route, theme, wrap } from "../state/explore.js";
import { runAsked } from "./cost-state.js";
import { formatDraft, timeOpen } from "./query-bar.js";
import { downloadOpen } from "./toolbar.js";

/** Whether the list of keys is open. */
export const keysOpen = signal(false);

export interface Key {
  /** As it is written in the list: `Shift+J`, `g e`. */
  readonly keys: string;
  readonly says: string;
  readonly run: () => void;
}

const focus = (id: string) => () => document.getElementById(id)?.focus();
const click = (id: string) => () => document.getElementById(id)?.click();

/** All keys of Explore. None counts while someone types. */
export const exploreKeys: readonly Key[] = [
  { keys: "/", says: "go to the query", run: focus("query") },
  { keys: "F", says: "find a field", run: findField },
  { keys: "T", says: "time range", run: () => (timeOpen.value = !timeOpen.value) },
  { keys: "L", says: "live", run: toggleLive },
  { keys: "End", says: "the last line; live goes on", run: toEnd },
  { keys: "J", says: "next line", run: () => step(1) },
  { keys: "K", says: "line before", run: () => step(-1) },
  { keys: "Shift+J", says: "select one more line", run: () => step(1, true) },
  { keys: "Shift+K", says: "select one line before", run: () => step(-1, true) },
  { keys: "Ctrl+A", says: "select all lines that are loaded", run: selectAll },
  { keys: "Ctrl+C", says: "copy the selected lines", run: copySelected },
  { keys: "Enter", says: "open the line", run: () => openRow(selection.at) },
  { keys: "Esc", says: "close; from a field: back to the lines", run: leave },
  { keys: "C", says: "context of the line; live: clear", run: showContext },
  { keys: "+", says: "only lines with the value in focus", run: filterFocused("Only") },
  { keys: "-", says: "only lines without it", run: filterFocused("Not") },
  { keys: "P", says: "pin the line", run: () => togglePin(source.peek().at(selection.at)) },
  { keys: "W", says: "wrap lines", run: () => (wrap.value = !wrap.value) },
  { keys: "R", says: "raw lines, or message first", run: () => (raw.value = !raw.value) },
  {
    keys: "U",
    says: "UTC or local time",
    run: () => navigate({ tz: route.peek().tz === "utc" ? "local" : "utc" }),
  },
  { keys: "O", says: "newest or oldest first", run: turnOrder },
  { keys: "Z", says: "zoom out", run: zoomOut },
  { keys: "D", says: "download all that matches", run: () => (downloadOpen.value = true) },
  { keys: "S", says: "copy a link with absolute times", run: () => shareLink() },
  { keys: "1", says: "lines", run: () => navigate({ view: "lines" }) },
  { keys: "2", says: "table", run: () => navigate({ view: "table" }) },
  { keys: "3", says: "patterns", run: () => navigate({ view: "patterns" }) },
  {
    keys: "4",
    says: "chart of the lines by level",
    run: () => graphBy("detected_level", undefined),
  },
  { keys: "Ctrl+Enter", says: "run", run: runAsked },
  { keys: "Alt+F", says: "format the query", run: formatDraft },
  { keys: "Ctrl+S", says: "save the query", run: click("save") },
];

/** Goes to another line; from then on keys are the list's, so that Enter opens the line and presses no button. */
function step(by: number, extend = false): void {
  if (document.activeElement?.closest(".detail") == null) focusList();
  moveBy(by, extend);
}

function focusList(): void {
  document.querySelector<HTMLElement>(".list")?.focus();
}

/** Goes to the field that finds fields; where the window is narrow they are in a sheet. */
function findField(): void {
  const field = document.getElementById("find-field");
  if (field?.offsetParent === null) sheetOpen.value = true;
  requestAnimationFrame(() => field?.focus());
}

/** Closes what is open, the last first. From a field it leads back to the lines, whose keys count again. */
function leave(): void {
  const from = document.activeElement;
  if (sheetOpen.peek()) sheetOpen.value = false;
  else if (!isTyping(from)) {
    if (opened.peek() !== undefined) closeLine();
    return;
  }
  if (from instanceof HTMLElement) from.blur();
  focusList();
}

function toEnd(): void {
  if (live.peek()) resumeLive();
  else pickRow(source.peek().count - 1);
}

function showContext(): void {
  if (live.peek()) clearLive();
  else openContext();
}

function openContext(): void {
  tab.value = "context";
  if (opened.peek() === undefined) openRow(Math.max(0, selection.at));
}

function selectAll(): void {
  selection.all(source.peek().count);
  pickRow(Math.max(0, selection.at), { toggle: true });
  selection.all(source.peek().count);
}

function copySelected(): void {
  if (getSelection()?.isCollapsed === false) {
    document.execCommand("copy");
    return;
  }
  const lines = selectedLines();
  if (lines.length > 0)
    void copy(copyText(lines, "text"), `${lines.length} line${lines.length === 1 ? "" : "s"}`);
}

/** Presses the + or - of the row that has the focus. */
function filterFocused(word: "Only" | "Not"): () => void {
  return () => {
    const row = document.activeElement?.closest(".value, .detail dl > div");
    row?.querySelector<HTMLElement>(`button[aria-label^="${word} "]`)?.click();
  };
}

export const everywhereKeys: readonly Key[] = [
  { keys: "?", says: "this list", run: () => (keysOpen.value = !keysOpen.value) },
  { keys: "g e", says: "Explore", run: () => navigate({ screen: "explore" }) },
  { keys: "g s", says: "Streams", run: () => navigate({ screen: "streams" }) },
  { keys: "g a", says: "Alerts", run: () => navigate({ screen: "alerts" }) },
  { keys: "g y", says: "System", run: () => navigate({ screen: "system" }) },
  {
    keys: "g t",
    says: "dark or light",
    run: () => (theme.value = theme.peek() === "dark" ? "light" : "dark"),
  },
];

let first = "";
let firstAt = 0;
const sequenceMs = 1000;

/** Does what a key stands for. Keys typed into a field belong to the field, unless Ctrl or Alt is held. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented) return;
  const typing = isTyping(event.target);
  const name = nameOf(event);
  if (typing && !/^(?:Ctrl\+(?:S|Enter)|Alt\+|Esc$)/.test(name)) return;
  if (document.querySelector('[role="dialog"]') !== null) return;
  const explore = route.peek().screen === "explore" ? exploreKeys : [];
  const all = [...everywhereKeys, ...explore];
  const sequence = Date.now() - firstAt < sequenceMs ? `${first} ${name.toLowerCase()}` : "";
  const key = all.find(({ keys }) => keys === sequence) ?? all.find(({ keys }) => keys === name);
  first = name.toLowerCase();
  firstAt = Date.now();
  if (key === undefined) return;
  const onButton =
    event.target instanceof Element && event.target.closest("button,a,summary,select") !== null;
  if (name === "Enter" && onButton) return;
  event.preventDefault();
  key.run();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function nameOf({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): string {
  const aliases: Readonly<Record<string, string>> = {
    Escape: "Esc",
    ArrowDown: "J",
    ArrowUp: "K",
    "−": "-",
  };
  const plain = aliases[key] ?? (key.length === 1 ? key.toUpperCase() : key);
  const isLetter = /^[A-Z]$/.test(plain);
  const shift = shiftKey && isLetter ? "Shift+" : "";
  return `${ctrlKey || metaKey ? "Ctrl+" : ""}${altKey ? "Alt+" : ""}${shift}${plain}`;
}
