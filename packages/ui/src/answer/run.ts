import { batch, signal } from "@preact/signals";
import type { Expr } from "@skald/logql/syntax";
import { ApiError, isAbort } from "../api/client.js";
import { type Trouble, troubleOf } from "../api/errors.js";
import { logIn, tryParse } from "../query/derive.js";
import { linesMax, loadLimits } from "../state/config.js";
import { draft, navigate, route, tenant } from "../state/explore.js";
import { type RangeText, resolveRange } from "../state/range.js";
import { addToHistory } from "../state/saved.js";
import { type Answer, answer, askLines, askMetric, grown, progress } from "./ask.js";
import { live, liveOver, liveRestart } from "./live-state.js";

export const busy = signal(false);
/** The answer that was there when the query that runs was asked: it stays until there is another. */
export const before = signal<Answer | undefined>(undefined);
export const trouble = signal<Trouble | undefined>(undefined);
export const loadingMore = signal(false);

/** Ends all that is asked for. */
let asking = new AbortController();
let attempt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Ends the query that runs; the server sees that nobody waits. */
export function cancel(): void {
  clearTimeout(timer);
  asking.abort();
  asking = new AbortController();
  batch(() => {
    busy.value = false;
    progress.value = undefined;
    loadingMore.value = false;
    if (trouble.value?.retryMs !== undefined) trouble.value = undefined;
  });
}

/** Runs the text of the editor over the range of the route. A text that does not parse is left alone. */
export function runQuery(how: "push" | "replace" = "push"): void {
  const text = draft.peek().trim();
  const expr = tryParse(text);
  if (text === "" || expr === undefined) return;
  cancel();
  attempt = 0;
  navigate({ q: text, ...(text === route.peek().q ? {} : { line: "" }) }, how);
  noteAsked();
  addToHistory(text);
  if (live.peek()) liveRestart.peek()?.();
  else {
    liveOver.value++;
    void start(text, expr);
  }
}

let asked = "";
const wanted = () => {
  const { q, from, to, tenant, view } = route.peek();
  return JSON.stringify([q, from, to, tenant, view === "instant"]);
};

/** Notes that what the address says is what the page shows, or is about to. */
export function noteAsked(): void {
  asked = wanted();
}

/** Whether the page shows what the address says; the back button and a link change only the address. */
export function isAsked(): boolean {
  return asked === wanted();
}

/** Changes the query's text and runs it: what every click on a value does. */
export function editQuery(text: string): void {
  draft.value = text;
  runQuery();
}

export function setRange(range: RangeText): void {
  navigate(range);
  runQuery("replace");
}

async function start(text: string, expr: Expr): Promise<void> {
  const mine = asking;
  batch(() => {
    busy.value = true;
    before.value = answer.peek();
  });
  const { from, to } = route.peek();
  const range = resolveRange({ from, to }, Date.now());
  const span = { startNs: String(range.fromNs), endNs: String(range.toNs) };
  const log = logIn(expr);
  const base = { text, expr, log, range, span };
  try {
    if (expr.kind === "log") await askLines(base, expr, () => asking.signal);
    else await askMetric(base, route.peek().view === "instant", mine.signal);
    if (asking !== mine) return;
    attempt = 0;
    trouble.value = undefined;
  } catch (error) {
    if (isAbort(error) || asking !== mine) return;
    const allowed = linesMax.peek();
    if (asksTooMuch(error)) await loadLimits();
    if (linesMax.peek() < allowed) return start(text, expr);
    fail(error, () => void start(text, expr));
  }
  if (asking !== mine) return;
  busy.value = false;
  progress.value = undefined;
}

/** Whether the server allows fewer lines than a page has; the page then asks what it allows. */
function asksTooMuch(error: unknown): boolean {
  return (
    error instanceof ApiError && error.status === 400 && /max entries limit/.test(error.message)
  );
}

/** Says what is wrong, and asks again where that may help. */
export function fail(error: unknown, again: () => void): void {
  const found = troubleOf(error, attempt++, tenant.peek());
  trouble.value = found;
  if (found.retryMs !== undefined) timer = setTimeout(again, found.retryMs);
}

/** Asks for the next page, if there is one and none is on its way. */
export async function loadMore(): Promise<void> {
  const paging = answer.peek()?.paging;
  if (paging === undefined || paging.done || loadingMore.peek() || busy.peek()) return;
  loadingMore.value = true;
  try {
    const { count } = paging;
    // A slice may have no line.
    do await paging.more();
    while (paging.count === count && !paging.done);
    if (answer.peek()?.paging === paging) grown.value++;
    trouble.value = undefined;
  } catch (error) {
    if (!isAbort(error)) fail(error, () => void loadMore());
  }
  loadingMore.value = false;
}

/** Asks again for lines that were let go. */
export async function restore(index: number): Promise<void> {
  const paging = answer.peek()?.paging;
  if (paging === undefined || loadingMore.peek()) return;
  loadingMore.value = true;
  try {
    await paging.restore(index);
    if (answer.peek()?.paging === paging) grown.value++;
  } catch (error) {
    if (!isAbort(error)) fail(error, () => void restore(index));
  }
  loadingMore.value = false;
}
