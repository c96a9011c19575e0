import { useComputed, useSignal } from "@preact/signals";
import { quote } from "@skald/model";
import { useEffect } from "preact/hooks";
import { answer } from "../answer/ask.js";
import { shownLines } from "../answer/list-state.js";
import { editQuery } from "../answer/run.js";
import { isAbort } from "../api/client.js";
import { fetchPatterns, type Pattern } from "../api/patterns.js";
import { Spark, trend } from "../chart/spark.js";
import { patternsOf } from "../lines/mine.js";
import { formatCount, formatWhole } from "../parts/format.js";
import { selectorText } from "../query/derive.js";
import { addStage } from "../query/edit.js";
import { config } from "../state/config.js";
import { draft } from "../state/explore.js";

const orders = { lines: "lines", new: "new", gone: "gone" } as const;
type Order = keyof typeof orders;
const shownMax = 200;
const noPatterns = Promise.resolve(undefined);

/** Lines by their pattern: how many, when, and a way to see only them or all others. */
export default function PatternsView() {
  const found = useSignal<readonly Pattern[]>([]);
  const note = useSignal("");
  const order = useSignal<Order>("lines");
  const log = answer.value?.log;
  const span = answer.value?.span;
  useEffect(() => {
    if (log === undefined || span === undefined) return;
    const asked = new AbortController();
    const fromShown = (why: string) => {
      found.value = patternsOf(shownLines());
      note.value = `${why}: these are of the ${formatWhole(shownLines().length)} lines on show.`;
    };
    const isMined = config.peek().patterns;
    const mined = isMined ? fetchPatterns(selectorText(log), span, asked.signal) : noPatterns;
    mined.then(
      (patterns) => {
        if (patterns === undefined)
          return fromShown("This server mines no patterns (pattern_ingester.enabled)");
        found.value = patterns;
        const more =
          log.stages.length > 0
            ? "Patterns are of the streams, without the filters behind them."
            : "";
        note.value = patterns.length === 0 ? "No patterns in this range." : more;
      },
      (error: unknown) => {
        if (!isAbort(error)) fromShown(error instanceof Error ? error.message : String(error));
      },
    );
    return () => asked.abort();
  }, [log, span]);
  const rows = useComputed(() => {
    const { span: range } = answer.value ?? {};
    if (order.value === "lines" || range === undefined) return found.value;
    return found.value.filter((pattern) => {
      const sums = trend(pattern.samples, range);
      const half = order.value === "new" ? sums.slice(0, 22) : sums.slice(22);
      return half.every((sum) => sum === 0);
    });
  });
  if (span === undefined) return null;
  const add = (op: "|>" | "!>", pattern: string) =>
    editQuery(addStage(draft.peek(), `${op} ${quote(pattern)}`));
  return (
    <div class="grid patterns" tabIndex={0} role="region" aria-label="Patterns">
      {note.value !== "" && <p class="note-row">{note.value}</p>}
      <table>
        <thead>
          <tr>
            <th class="num">lines</th>
            <th>level</th>
            <th>over time</th>
            <th>pattern: marked parts differ from line to line</th>
            <th class="num">
              {Object.keys(orders).map((name) => (
                <button
                  class={order.value === name ? "tool on" : "tool"}
                  type="button"
                  key={name}
                  aria-pressed={order.value === name}
                  onClick={() => (order.value = name as Order)}
                >
                  {name}
                </button>
              ))}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.value.slice(0, shownMax).map((pattern) => (
            <tr key={pattern.pattern + pattern.level}>
              <td class="num">{formatCount(pattern.lines)}</td>
              <td class={`name l-${pattern.level}`}>{pattern.level}</td>
              <td>
                <Spark sums={trend(pattern.samples, span)} level={pattern.level} />
              </td>
              <td title={pattern.pattern}>
                <span class="p">{marked(pattern.pattern)}</span>
              </td>
              <td class="acts">
                <button
                  class="plus"
                  type="button"
                  aria-label={`Only ${pattern.pattern.slice(0, 80)}`}
                  title="Only these lines"
                  onClick={() => add("|>", pattern.pattern)}
                >
                  +
                </button>{" "}
                <button
                  class="plus"
                  type="button"
                  aria-label={`Not ${pattern.pattern.slice(0, 80)}`}
                  title="All other lines"
                  onClick={() => add("!>", pattern.pattern)}
                >
                  −
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.value.length > shownMax && (
        <p class="note-row">{rows.value.length - shownMax} rarer patterns are not shown</p>
      )}
    </div>
  );
}

function marked(pattern: string) {
  return pattern.split("<_>").flatMap((part, at) => [
    ...(at === 0
      ? []
      : [
          <span class="any" key={`any${at}`}>
            ···
          </span>,
        ]),
    part,
  ]);
}
