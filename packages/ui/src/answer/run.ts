import { batch, signal } from "@preact/signals";
import type { Expr, LogExpr } from "@skald/logql/syntax";
import { ApiError, isAbort } from "../api/client.js";
import { type Trouble, troubleOf } from "../api/errors.js";
import type { Span } from "../api/fields.js";
import {
  fetchLines,
  fetchRange,
  type Level,
  levelOf,
  levels,
  type MetricAnswer,
  type Stats,
} from "../api/lines.js";
import { Paging } from "../lines/paging.js";
import { bucketsFor, logIn, tryParse } from "../query/derive.js";
import { linesMax, loadLimits } from "../state/config.js";
import { draft, navigate, oldestFirst, route, tenant } from "../state/explore.js";
import { type Range, type RangeText, resolveRange, stepFor } from "../state/range.js";
import { addToHistory } from "../state/saved.js";
import { live, liveOver, liveRestart } from "./live-state.js";

/** What the last query that ran was, and what came of it. */
export interface Answer {
  readonly text: string;
  readonly expr: Expr;
  /** The log query in it. */
  readonly log: LogExpr | undefined;
  readonly range: Range;
  readonly span: Span;
  readonly paging?: Paging;
  readonly metric?: MetricAnswer & { readonly step: number };
  readonly stats: Stats;
  readonly warnings: readonly string[];
  readonly tookMs: number;
}

export interface Histogram {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly buckets: number;
  readonly counts: ReadonlyMap<Level, Float64Array>;
  readonly total: number;
}

export const answer = signal<Answer | undefined>(undefined);
export const histogram = signal<Histogram | undefined>(undefined);
export const busy = signal(false);
export const trouble = signal<Trouble | undefined>(undefined);
/** Rises when the list has more lines. */
export const grown = signal(0);
export const loadingMore = signal(false);

const pageSize = 1000;
const heldMax = 100_000;

let running: AbortController | undefined;
let attempt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Ends the query that runs; the server sees that nobody waits. */
export function cancel(): void {
  clearTimeout(timer);
  running?.abort();
  running = undefined;
  batch(() => {
    busy.value = false;
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
  addToHistory(text);
  if (live.peek()) liveRestart.peek()?.();
  else {
    liveOver.value++;
    void start(text, expr);
  }
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
  const controller = new AbortController();
  running = controller;
  busy.value = true;
  const { from, to } = route.peek();
  const range = resolveRange({ from, to }, Date.now());
  const span = { startNs: String(range.fromNs), endNs: String(range.toNs) };
  const log = logIn(expr);
  const base = { text, expr, log, range, span };
  try {
    if (expr.kind === "log") await runLog(base, expr, controller.signal);
    else await runMetric(base, controller.signal);
    if (running !== controller) return;
    attempt = 0;
    trouble.value = undefined;
  } catch (error) {
    if (isAbort(error) || running !== controller) return;
    const before = linesMax.peek();
    if (asksTooMuch(error)) await loadLimits();
    if (linesMax.peek() < before) return start(text, expr);
    fail(error, () => void start(text, expr));
  }
  if (running === controller) busy.value = false;
}

/** Whether the server allows fewer lines than a page has; the page then asks what it allows. */
function asksTooMuch(error: unknown): boolean {
  return (
    error instanceof ApiError && error.status === 400 && /max entries limit/.test(error.message)
  );
}

function fail(error: unknown, again: () => void): void {
  const found = troubleOf(error, attempt++, tenant.peek());
  trouble.value = found;
  if (found.retryMs !== undefined) timer = setTimeout(again, found.retryMs);
}

type Base = Pick<Answer, "text" | "expr" | "log" | "range" | "span">;

async function runLog(base: Base, log: LogExpr, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const paging = new Paging({
    query: base.text,
    ...base.span,
    direction: oldestFirst.peek() ? "forward" : "backward",
    size: Math.min(pageSize, linesMax.peek()),
    limitMax: linesMax.peek(),
    heldMax,
    fetch: (query) => fetchLines(query, signal),
  });
  const counting = countByLevel(base, log, signal);
  const first = await paging.more();
  const { stats, warnings = [] } = first ?? { stats: { bytes: 0, lines: 0, seconds: 0 } };
  batch(() => {
    const tookMs = performance.now() - startedAt;
    answer.value = { ...base, paging, stats, warnings, tookMs };
    if (histogram.value !== pending) histogram.value = undefined;
  });
  await counting;
}

/** The histogram of the query that runs, when it came before the lines. */
let pending: Histogram | undefined;

async function countByLevel(base: Base, log: LogExpr, signal: AbortSignal): Promise<void> {
  pending = undefined;
  const buckets = bucketsFor(log, base.range);
  const { query, start: from, end, step, count } = buckets;
  let found: MetricAnswer;
  try {
    found = await fetchRange({ query, start: from, end, step }, signal);
  } catch {
    // The lines are there without a chart, and the error of the lines says what is wrong.
    return;
  }
  const counts = new Map<Level, Float64Array>();
  const fromMs = Number(base.range.fromNs / 1_000_000n);
  let total = 0;
  for (const { labels, points } of found.series) {
    const level = levelOf(labels.detected_level);
    const row = counts.get(level) ?? new Float64Array(count);
    counts.set(level, row);
    for (const [at, value] of points) {
      const bucket = Math.round((at * 1000 - fromMs) / (step * 1000)) - 1;
      if (bucket < 0 || bucket >= count) continue;
      row[bucket] = (row[bucket] ?? 0) + value;
      total += value;
    }
  }
  const ordered = new Map(
    levels.filter((level) => counts.has(level)).map((level) => [level, counts.get(level)!]),
  );
  pending = { fromMs, stepMs: step * 1000, buckets: count, counts: ordered, total };
  histogram.value = pending;
}

const pointsMax = 240;

async function runMetric(base: Base, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const step = stepFor(base.range, pointsMax);
  const { startNs, endNs } = base.span;
  const metric = await fetchRange({ query: base.text, start: startNs, end: endNs, step }, signal);
  const { stats, warnings } = metric;
  batch(() => {
    histogram.value = undefined;
    const tookMs = performance.now() - startedAt;
    answer.value = { ...base, metric: { ...metric, step }, stats, warnings, tookMs };
  });
}

/** Asks for the next page, if there is one and none is on its way. */
export async function loadMore(): Promise<void> {
  const paging = answer.peek()?.paging;
  if (paging === undefined || paging.done || loadingMore.peek() || busy.peek()) return;
  loadingMore.value = true;
  try {
    await paging.more();
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

/** The query that a page with data and no query begins with: streams by the label that covers most. */
export function firstQuery(label: string): string {
  return `{${label}=~".+"}`;
}
