import { copy } from "../parts/toast.js";
import { countable } from "../query/derive.js";
import { addFilter, type Origin } from "../query/edit.js";
import { draft, oldestFirst, route, shareAddress } from "../state/explore.js";
import type { RangeText } from "../state/range.js";
import { answer } from "./ask.js";
import { editQuery, runQuery, setRange } from "./run.js";

/** Filters by a value that somebody clicked, and runs. */
export function filterBy(name: string, value: string, negated: boolean, origin: Origin): void {
  editQuery(addFilter(draft.peek(), { name, value, negated }, origin));
}

/** Goes to the chart of lines by the values of a field. */
export function graphBy(name: string, parser: string | undefined): void {
  const log = answer.peek()?.log;
  if (log === undefined) return;
  const isRead = parser === undefined || log.stages.some(({ kind }) => kind === parser);
  const counted = countable(log, isRead ? "" : ` | ${parser}`);
  editQuery(`sum by (${name}) (count_over_time(${counted} [1m]))`);
}

const before: RangeText[] = [];
const keptMax = 50;

/** Narrows the range to a part of it; `zoomOut` goes back. */
export function zoom(fromMs: number, toMs: number): void {
  const { from, to } = route.peek();
  before.push({ from, to });
  if (before.length > keptMax) before.shift();
  const ns = (ms: number) => String(BigInt(Math.round(ms)) * 1_000_000n);
  setRange({ from: ns(fromMs), to: ns(toMs) });
}

export function zoomOut(): void {
  const last = before.pop();
  if (last !== undefined) setRange(last);
}

/** Asks for the lines in the other order of time. */
export function turnOrder(): void {
  oldestFirst.value = !oldestFirst.value;
  runQuery();
}

/** The link to what is on the page, with absolute times. */
export function shareLink(line = route.peek().line): void {
  const span = answer.peek()?.span;
  void copy(
    shareAddress(span?.startNs ?? route.peek().from, span?.endNs ?? route.peek().to, line),
    "the link",
  );
}
