import { signal, useComputed, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { toggleLive } from "../answer/live.js";
import { live } from "../answer/live-state.js";
import { labels, sheetOpen } from "../answer/panel-state.js";
import { busy, cancel, editQuery, setRange } from "../answer/run.js";
import { fetchFields, fetchFieldValues, fetchLabels, fetchLabelValues } from "../api/fields.js";
import { Icon } from "../parts/icon.js";
import { Chips } from "../query/chips.js";
import type { Sources } from "../query/complete.js";
import { formatted, tryParse } from "../query/derive.js";
import { Editor } from "../query/editor.js";
import { type Problem, problemOf } from "../query/problem.js";
import { chipsFolded, draft, regexChecked, route } from "../state/explore.js";
import { resolveRange } from "../state/range.js";
import { history, saved, unsave } from "../state/saved.js";
import { Cost } from "./cost.js";
import { runAsked } from "./cost-state.js";
import { SaveDialog, SavedMenu } from "./saved-menu.js";
import { TimePicker } from "./time-picker.js";

/** Whether the menu of the time range is open; a key opens it. */
export const timeOpen = signal(false);

function currentSpan() {
  const { fromNs, toNs } = resolveRange(route.peek(), Date.now());
  return { startNs: String(fromNs), endNs: String(toNs) };
}

/** Answers for suggestions; a newer question ends the older one. */
function makeSources(): Sources {
  let asked: AbortController | undefined;
  const next = () => {
    asked?.abort();
    asked = new AbortController();
    return asked.signal;
  };
  return {
    labels: (selector) => fetchLabels(selector, currentSpan(), next()),
    labelValues: (name, selector) => fetchLabelValues(name, selector, currentSpan(), next()),
    fields: (query) => fetchFields(query, currentSpan(), { lineLimit: 200, signal: next() }),
    fieldValues: (name, query) => fetchFieldValues(name, query, currentSpan(), next()),
  };
}

export function QueryBar() {
  const caret = useSignal(0);
  const saving = useSignal(false);
  const listOpen = useSignal(false);
  const sources = useRef<Sources>(undefined);
  sources.current ??= makeSources();
  const place = useRef(-1);
  const problem = useComputed<Problem | undefined>(() => {
    regexChecked.value;
    return problemOf(draft.value, caret.value);
  });
  const good = useRef(draft.value);
  if (problem.value === undefined && draft.value !== "") good.current = draft.value;
  const isSaved = saved.value.some(({ query }) => query === draft.value);
  return (
    <section class="ask" aria-label="Query">
      <div class="bar">
        <Editor
          text={draft.value}
          latest={() => draft.peek()}
          problem={problem.value}
          sources={sources.current}
          onText={(text, at) => {
            if (text !== draft.peek()) place.current = -1;
            caret.value = at;
            draft.value = text;
          }}
          onRun={runAsked}
          onHistory={(direction) => {
            const list = history();
            const next = place.current + direction;
            if (next < 0 || next >= list.length) return undefined;
            const text = list[next];
            draft.value = text ?? "";
            place.current = next;
            return text;
          }}
        >
          <button
            class="tool"
            type="button"
            title="Saved queries and history"
            aria-label="Saved queries and history"
            onClick={() => (listOpen.value = !listOpen.value)}
          >
            <Icon name="menu" />
          </button>
          <button
            class={`tool${isSaved ? " on" : ""}`}
            type="button"
            title="Save this query (Ctrl+S)"
            aria-label="Save this query"
            aria-pressed={isSaved}
            id="save"
            onClick={() => (isSaved ? unsave(draft.value) : (saving.value = true))}
          >
            <Icon name="star" />
          </button>
          {listOpen.value && (
            <SavedMenu onClose={() => (listOpen.value = false)} onTake={editQuery} />
          )}
        </Editor>
        <TimePicker open={timeOpen} onRange={setRange} />
        <button
          class="button only-phone"
          type="button"
          onClick={() => (sheetOpen.value = !sheetOpen.value)}
        >
          <Icon name="filter" />
          Fields
        </button>
        <button
          class={`button wide${live.value ? " on" : ""}`}
          type="button"
          id="live"
          title="Follow new lines (L)"
          aria-pressed={live.value}
          disabled={tryParse(draft.value)?.kind !== "log"}
          onClick={toggleLive}
        >
          <Icon name={live.value ? "stop" : "play"} />
          Live
        </button>
        {busy.value ? (
          <button class="button primary" type="button" id="run" onClick={cancel}>
            Cancel
          </button>
        ) : (
          <button
            class="button primary"
            type="button"
            id="run"
            title="Run (Ctrl+Enter)"
            disabled={problem.value !== undefined}
            onClick={runAsked}
          >
            Run
          </button>
        )}
      </div>
      {!chipsFolded.value && good.current !== "" && (
        <div class="not-phone">
          <Chips
            text={good.current}
            stale={good.current !== draft.value}
            labels={labels.value.map(({ name }) => name)}
            onEdit={(text) =>
              tryParse(text) === undefined ? (draft.value = text) : editQuery(text)
            }
          />
        </div>
      )}
      <Cost problem={problem.value} onFix={(text) => (draft.value = text)} />
      {saving.value && <SaveDialog query={draft.value} onClose={() => (saving.value = false)} />}
    </section>
  );
}

/** Writes the query as people like to read it. */
export function formatDraft(): void {
  draft.value = formatted(draft.peek());
}
