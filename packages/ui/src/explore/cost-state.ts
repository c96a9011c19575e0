import { effect, signal } from "@preact/signals";
import { busy, runQuery } from "../answer/run.js";
import {
  bytesToRead,
  type Explanation,
  fetchExplanation,
  fetchHolding,
  type Holding,
} from "../api/stats.js";
import { logIn, selectorText, tryParse } from "../query/derive.js";
import { draft, route } from "../state/explore.js";
import { resolveRange } from "../state/range.js";

/** What the server says of a query before it runs. */
export interface KnownCost {
  readonly holding: Holding | undefined;
  readonly explained: Explanation | undefined;
  /** The query and range that this is about. */
  readonly about: string;
}

const nothing: KnownCost = { holding: undefined, explained: undefined, about: "" };

export const cost = signal<KnownCost>(nothing);
/** Whether Run waits to be pressed once more, because the query will read much. */
export const asksAgain = signal(false);

const askAfterMs = 200;
const askAgainOverBytes = 1e9;

/** Asks what the query in the editor costs, a moment after each change. */
export function startCost(): void {
  effect(() => {
    const text = draft.value.trim();
    const { from, to, tenant, screen } = route.value;
    const isBusy = busy.value;
    asksAgain.value = false;
    const expr = tryParse(text);
    const log = expr === undefined ? undefined : logIn(expr);
    // While a query runs its lines come first.
    if (log === undefined || screen !== "explore" || isBusy) return;
    const asked = new AbortController();
    const timer = setTimeout(async () => {
      const { fromNs, toNs } = resolveRange({ from, to }, Date.now());
      const span = { startNs: String(fromNs), endNs: String(toNs) };
      const explained = await fetchExplanation(text, span, 1000, asked.signal);
      const holding =
        explained === undefined
          ? await fetchHolding(selectorText(log), span, asked.signal).catch(() => undefined)
          : sumOf(explained);
      const about = JSON.stringify([text, from, to, tenant]);
      if (!asked.signal.aborted) cost.value = { holding, explained, about };
    }, askAfterMs);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  });
}

function sumOf({ parts }: Explanation): Holding {
  const sum = (of: (part: Explanation["parts"][number]) => number) =>
    parts.reduce((total, part) => total + of(part), 0);
  return {
    streams: sum((one) => one.streams),
    bytes: sum((one) => one.bytes),
    entries: sum((one) => one.entries),
  };
}

/** Runs the query; one that is known to read much only when it is asked for twice. */
export function runAsked(): void {
  const text = draft.peek().trim();
  const { from, to, tenant } = route.peek();
  const { about, explained } = cost.peek();
  const isKnown = about === JSON.stringify([text, from, to, tenant]);
  const bytes = isKnown && explained !== undefined ? bytesToRead(explained) : 0;
  const isMuch = bytes > askAgainOverBytes && readsAll(text);
  asksAgain.value = isMuch && !asksAgain.peek();
  if (!asksAgain.peek()) runQuery();
}

/** Whether an answer needs all that matches: one of lines without filters ends with its first page. */
function readsAll(text: string): boolean {
  const expr = tryParse(text);
  return expr?.kind !== "log" || expr.stages.length > 0;
}
