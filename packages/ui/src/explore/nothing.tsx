import { useSignal } from "@preact/signals";
import { type LogExpr, printQuery, printSelector } from "@skald/logql/syntax";
import { formatMatcher } from "@skald/model";
import { useEffect } from "preact/hooks";
import type { Answer } from "../answer/ask.js";
import { editQuery, setRange } from "../answer/run.js";
import type { Span } from "../api/fields.js";
import { fetchInstant } from "../api/lines.js";
import { fetchHolding, type Holding } from "../api/stats.js";
import { formatCount, formatWhole } from "../parts/format.js";
import { countable, selectorText } from "../query/derive.js";
import { removeMatcher, removeStage } from "../query/edit.js";
import { partsOf } from "../query/parts.js";
import { draft } from "../state/explore.js";

/** Wider ranges; the shortest that has lines is offered. */
const wider = [
  ["now-24h", "Look at 24 hours", 1n],
  ["now-7d", "Look at 7 days", 7n],
  ["now-30d", "Look at 30 days", 30n],
] as const;
type Wider = (typeof wider)[number];
const dayNs = 24n * 3600n * 1_000_000_000n;

/** Matchers that are looked at one by one when no stream has them all. */
const matchersMax = 6;

/** What to do when no line matches: a wider range, or one filter less, with what each would have. */
export function NothingFound({ found }: { readonly found: Answer }) {
  const here = useSignal<Holding | undefined>(undefined);
  const wide = useSignal<{ range: Wider; holding: Holding } | undefined>(undefined);
  const lessOne = useSignal<number | undefined>(undefined);
  const without = useSignal<readonly (Holding | undefined)[]>([]);
  const { log, span, text, range } = found;
  const lengthNs = range.toNs - range.fromNs;
  const offers = wider.filter(([, , days]) => days * dayNs > lengthNs);
  const [back, says] = wide.value?.range ?? offers[0] ?? [];
  useEffect(() => {
    here.value = wide.value = lessOne.value = undefined;
    without.value = [];
    if (log === undefined) return;
    const asked = new AbortController();
    const { signal } = asked;
    const selector = selectorText(log);
    const keep = <T,>(into: { value: T | undefined }, answer: Promise<T>) =>
      void answer.then(
        (value) => {
          if (!signal.aborted) into.value = value;
        },
        () => undefined,
      );
    keep(here, fetchHolding(selector, span, signal));
    keep(wide, shortestWithLines(offers, selector, signal));
    if (log.stages.length > 0) {
      const less = { ...log, stages: log.stages.slice(0, -1) };
      keep(lessOne, countLines(less, span, signal));
    }
    if (log.matchers.length > 1) {
      const holdings = log.matchers.slice(0, matchersMax).map((_, at) => {
        const others = log.matchers.toSpliced(at, 1);
        // A selector needs one matcher that takes no empty value; the server says when there is none.
        const fewer = fetchHolding(printSelector(others), span, signal);
        return fewer.catch(() => undefined);
      });
      keep(without, Promise.all(holdings));
    }
    return () => asked.abort();
  }, [found]);
  const stages = partsOf(text).selectors[0]?.stages ?? [];
  const last = stages.at(-1);
  const streams = here.value?.streams;
  return (
    <div class="nothing">
      <h2>
        {streams === undefined
          ? "No line matches"
          : streams === 0
            ? "No stream has these labels in this range"
            : `No line of ${formatWhole(streams)} stream${streams === 1 ? "" : "s"} in this range matches`}
      </h2>
      <p class="mono">{log === undefined ? text : printQuery(log)}</p>
      <div class="choices">
        {back !== undefined && (
          <button class="button" type="button" onClick={() => setRange({ from: back, to: "now" })}>
            {says}
            {wide.value !== undefined && (
              <span class="dim">
                {formatCount(wide.value.holding.entries)} lines of these streams
              </span>
            )}
          </button>
        )}
        {streams === 0 &&
          without.value.map((holding, at) => {
            const matcher = log?.matchers[at];
            if (holding === undefined || holding.streams === 0 || matcher === undefined)
              return null;
            return (
              <button
                class="button"
                type="button"
                key={formatMatcher(matcher)}
                onClick={() => editQuery(removeMatcher(draft.peek(), 0, at))}
              >
                Without <span class="mono">{formatMatcher(matcher).slice(0, 60)}</span>
                <span class="dim">{formatCount(holding.entries)} lines of these streams</span>
              </button>
            );
          })}
        {last !== undefined && streams !== 0 && (
          <button
            class="button"
            type="button"
            onClick={() => editQuery(removeStage(draft.peek(), 0, stages.length - 1))}
          >
            Without <span class="mono">{text.slice(last.start, last.end).slice(0, 60)}</span>
            {lessOne.value !== undefined && (
              <span class="dim">{formatCount(lessOne.value)} lines</span>
            )}
          </button>
        )}
      </div>
    </div>
  );
}

/** The shortest of some ranges in which a selector has lines, else the longest; undefined when there is none to look at. */
async function shortestWithLines(
  ranges: readonly Wider[],
  selector: string,
  signal: AbortSignal,
): Promise<{ range: Wider; holding: Holding } | undefined> {
  const now = BigInt(Date.now()) * 1_000_000n;
  let last: { range: Wider; holding: Holding } | undefined;
  for (const range of ranges) {
    const around = { startNs: String(now - range[2] * dayNs), endNs: String(now) };
    last = { range, holding: await fetchHolding(selector, around, signal) };
    if (last.holding.entries > 0) break;
  }
  return last;
}

/** How many lines a query has. */
async function countLines(log: LogExpr, span: Span, signal: AbortSignal): Promise<number> {
  const lengthNs = BigInt(span.endNs) - BigInt(span.startNs);
  const seconds = lengthNs / 1_000_000_000n || 1n;
  const query = `sum(count_over_time(${countable(log)} [${seconds}s]))`;
  const { series } = await fetchInstant({ query, time: span.endNs }, signal);
  return series[0]?.points[0]?.[1] ?? 0;
}
