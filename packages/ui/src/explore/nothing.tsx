import { useSignal } from "@preact/signals";
import { printQuery } from "@skald/logql/syntax";
import { useEffect } from "preact/hooks";
import { type Answer, editQuery, setRange } from "../answer/run.js";
import { fetchInstant } from "../api/lines.js";
import { fetchHolding, type Holding } from "../api/stats.js";
import { formatCount, formatWhole } from "../parts/format.js";
import { countable, selectorText } from "../query/derive.js";
import { removeStage } from "../query/edit.js";
import { partsOf } from "../query/parts.js";
import { draft } from "../state/explore.js";

const dayNs = 24n * 3600n * 1_000_000_000n;

/** What to do when no line matches: a wider range, or one filter less, with what each would have. */
export function NothingFound({ found }: { readonly found: Answer }) {
  const here = useSignal<Holding | undefined>(undefined);
  const day = useSignal<Holding | undefined>(undefined);
  const lessOne = useSignal<number | undefined>(undefined);
  const { log, span, text } = found;
  useEffect(() => {
    if (log === undefined) return;
    const asked = new AbortController();
    const selector = selectorText(log);
    const keep = <T,>(into: { value: T | undefined }, answer: Promise<T>) =>
      void answer.then(
        (value) => (into.value = value),
        () => undefined,
      );
    const startNs = String(BigInt(span.endNs) - dayNs);
    keep(here, fetchHolding(selector, span, asked.signal));
    keep(day, fetchHolding(selector, { startNs, endNs: span.endNs }, asked.signal));
    if (log.stages.length > 0) {
      const less = { ...log, stages: log.stages.slice(0, -1) };
      const seconds = Math.max(
        1,
        Number((BigInt(span.endNs) - BigInt(span.startNs)) / 1_000_000_000n),
      );
      const query = `sum(count_over_time(${countable(less)} [${seconds}s]))`;
      const answer = fetchInstant({ query, time: span.endNs }, asked.signal);
      keep(
        lessOne,
        answer.then(({ series }) => series[0]?.points[0]?.[1] ?? 0),
      );
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
            : `No line of ${formatWhole(streams)} streams in this range matches`}
      </h2>
      <p class="mono">{log === undefined ? text : printQuery(log)}</p>
      <div class="choices">
        <button
          class="button"
          type="button"
          onClick={() => setRange({ from: "now-24h", to: "now" })}
        >
          Look at 24 hours
          {day.value !== undefined && (
            <span class="dim">{formatCount(day.value.entries)} lines of these streams</span>
          )}
        </button>
        {last !== undefined && (
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
