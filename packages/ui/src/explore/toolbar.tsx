import { signal } from "@preact/signals";
import { answer, grown, histogram } from "../answer/ask.js";
import { hidden, liveSource, source } from "../answer/list-state.js";
import { liveInfo, resumeLive } from "../answer/live.js";
import { live, livePause } from "../answer/live-state.js";
import { editQuery, loadingMore } from "../answer/run.js";
import type { Level } from "../api/lines.js";
import { formatCount, formatWhole } from "../parts/format.js";
import { Icon, type IconName } from "../parts/icon.js";
import { Lazy } from "../parts/lazy.js";
import { addFilter } from "../query/edit.js";
import { draft, navigate, route, wrap } from "../state/explore.js";
import type { View } from "../state/route.js";

const viewNames: readonly (readonly [View, string, IconName])[] = [
  ["lines", "Lines", "rows"],
  ["table", "Table", "table"],
  ["patterns", "Patterns", "patterns"],
];

/** Whether the window for downloads is open, the menu of the view, and the table of counts. */
export const downloadOpen = signal(false);
const menuOpen = signal(false);
export const countsOpen = signal(false);

const loadMenu = () => import("../views/view-menu.js");

/** Levels with their counts, how much of the answer the list has, and the views. */
export function Toolbar() {
  const { view } = route.value;
  return (
    <div class="tools-row" role="toolbar" aria-label="View">
      <Legend />
      {live.value ? (
        <LiveState />
      ) : (
        <span class="count" id="count">
          {countText()}
        </span>
      )}
      <div class="views">
        {viewNames.map(([name, label, icon], at) => (
          <button
            key={name}
            class={`tool${view === name ? " on" : ""}`}
            type="button"
            aria-pressed={view === name}
            title={`${label} (${at + 1})`}
            onClick={() => navigate({ view: name })}
          >
            <Icon name={icon} />
            <span class="not-phone">{label}</span>
          </button>
        ))}
      </div>
      <span class="rule not-phone" />
      <button
        class={`tool not-phone${wrap.value ? " on" : ""}`}
        type="button"
        title="Wrap lines (W)"
        aria-label="Wrap lines"
        aria-pressed={wrap.value}
        onClick={() => (wrap.value = !wrap.value)}
      >
        <Icon name="wrap" />
      </button>
      <div class="end">
        <button
          class="tool"
          type="button"
          id="download"
          title="Download all that matches (D)"
          aria-label="Download all that matches"
          disabled={answer.value?.log === undefined}
          onClick={() => (downloadOpen.value = true)}
        >
          <Icon name="download" />
        </button>
        <div class="anchor">
          <button
            class="tool"
            type="button"
            title="More about the view and the selected lines"
            aria-label="More"
            aria-expanded={menuOpen.value}
            onClick={() => (menuOpen.value = !menuOpen.value)}
          >
            <Icon name="more" />
          </button>
          {menuOpen.value && (
            <Lazy
              load={loadMenu}
              props={{
                onClose: () => (menuOpen.value = false),
                onCounts: () => (countsOpen.value = true),
              }}
            />
          )}
        </div>
      </div>
    </div>
  );
}

/** How fast lines come, what was dropped, and what waits while somebody reads. */
function LiveState() {
  const { rate, dropped, waiting, broken } = liveInfo.value;
  return (
    <span class="count" id="count">
      {broken !== undefined && <b>{broken}; trying again. </b>}
      {rate} lines/s
      {dropped > 0 && `, ${formatWhole(dropped)} dropped`}
      {livePause.value && (
        <>
          {" "}
          <button class="link" type="button" id="resume" title="Go on (End)" onClick={resumeLive}>
            paused, {formatWhole(waiting)} new
          </button>
        </>
      )}
    </span>
  );
}

function Legend() {
  const counts = histogram.value?.counts;
  // A live view has other lines than those that were counted.
  const isCounted = liveSource.value === undefined;
  const toggle = (level: Level, alone: boolean) => {
    if (alone) {
      const wanted = { name: "detected_level", value: level, negated: false };
      return editQuery(addFilter(draft.peek(), wanted, { kind: "metadata" }));
    }
    const next = new Set(hidden.value);
    if (!next.delete(level)) next.add(level);
    hidden.value = next;
  };
  return (
    <div class="legend">
      {[...(counts ?? [])].map(([level, row]) => (
        <button
          type="button"
          key={level}
          aria-pressed={!hidden.value.has(level)}
          title={`Hide ${level}; with Alt: only ${level}`}
          onClick={(event) => toggle(level, event.altKey)}
        >
          <i class={`bg-${level}`} />
          {level}
          {isCounted && <b>{formatCount(row.reduce((sum, count) => sum + count, 0))}</b>}
        </button>
      ))}
    </div>
  );
}

/** `1,000 newest of 65,481`, and what is missing. */
function countText(): string {
  const found = answer.value;
  grown.value;
  if (found?.paging === undefined) return "";
  const { paging } = found;
  const held = source.value.count;
  const order = paging.direction === "forward" ? "oldest" : "newest";
  const chart = histogram.value;
  const isSame = chart?.text === found.text && chart.span.startNs === found.span.startNs;
  const total = isSame && chart.complete ? chart.total : undefined;
  const of = paging.done ? paging.count : (total ?? undefined);
  const text =
    of === undefined
      ? `${formatWhole(held)} ${order}, more below`
      : `${formatWhole(held)} ${order} of ${formatWhole(of)}`;
  const crowded =
    paging.crowded.length > 0
      ? "; one nanosecond has more lines than the server gives at once: some may be missing"
      : "";
  return `${text}${loadingMore.value ? ", loading" : ""}${crowded}`;
}
