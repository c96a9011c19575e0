import { useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Offer, offersFor, offersMax, type Sources } from "./complete.js";
import { helpFor } from "./help.js";
import { highlight } from "./highlight.js";
import { type Place, placeAt } from "./place.js";
import type { Problem } from "./problem.js";

interface EditorProps {
  readonly text: string;
  /** The text as it is now, which may be newer than the one that is drawn. */
  readonly latest: () => string;
  readonly problem: Problem | undefined;
  readonly sources: Sources;
  readonly onText: (text: string, caret: number) => void;
  readonly onRun: () => void;
  /** Another query of the history, older or newer; undefined when there is none. */
  readonly onHistory: (direction: 1 | -1) => string | undefined;
  readonly children?: ComponentChildren;
}

const suggestAfterMs = 120;

/** The query: a real text area over a layer that colours the same text. */
export function Editor(props: EditorProps) {
  const { text, problem, onText, latest } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const suggest = useSuggestions(area, props);
  const wrong = problem?.kind === "wrong" ? problem : undefined;
  const { open, offers, at } = suggest;
  // Before the frame: an event of the text area, such as a change of its selection, would put the old text back.
  useLayoutEffect(() => {
    // The text of this render may be older than what was typed since.
    const now = latest();
    if (area.current !== null && area.current.value !== now) area.current.value = now;
  }, [text]);
  return (
    <div class="editor">
      <div class={`box${wrong ? " bad" : ""}`}>
        <div class="sheet">
          <pre aria-hidden="true">
            {highlight(text, wrong).map(({ text: part, className }, index) => (
              <span class={className} key={index}>
                {part}
              </span>
            ))}{" "}
          </pre>
          <textarea
            id="query"
            ref={area}
            aria-label="Query"
            aria-autocomplete="list"
            aria-invalid={wrong !== undefined}
            aria-describedby="problem"
            {...(open.value && {
              "aria-controls": "suggestions",
              "aria-activedescendant": `offer-${at.value}`,
            })}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder='A query, such as {app="web"} |= "error"'
            onInput={(event) => {
              const { value, selectionStart } = event.currentTarget;
              onText(value, selectionStart);
              suggest.later();
            }}
            onSelect={(event) =>
              onText(event.currentTarget.value, event.currentTarget.selectionStart)
            }
            onKeyDown={(event) => onKey(event, props, suggest)}
            onBlur={() => suggest.close()}
            onMouseMove={(event) => showHelp(event.currentTarget, event, text)}
          />
        </div>
      </div>
      <div class="end">{props.children}</div>
      {open.value && (
        <div
          class="menu suggest"
          id="suggestions"
          role="listbox"
          aria-label="Suggestions"
          tabIndex={0}
          ref={suggest.place}
        >
          {offers.value.map((offer, index) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the text area keeps the focus and names the current one.
            // biome-ignore lint/a11y/useKeyWithClickEvents: keys go to the text area.
            <div
              class="item"
              role="option"
              id={`offer-${index}`}
              key={offer.text + offer.kind}
              aria-selected={index === at.value}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => suggest.take(index)}
            >
              <span class="kind">{offer.kind}</span>
              {offer.text.length > 60 ? `${offer.text.slice(0, 60)}…` : offer.text}
              <span class="note">{offer.note}</span>
            </div>
          ))}
          <footer aria-hidden="true">
            <span>↑↓ choose</span>
            <span>Tab take</span>
            <span>Esc close</span>
            {offers.value.length >= offersMax && <span>first {offersMax}: type on for others</span>}
          </footer>
        </div>
      )}
    </div>
  );
}

type Suggest = ReturnType<typeof useSuggestions>;

function useSuggestions(
  area: { readonly current: HTMLTextAreaElement | null },
  props: EditorProps,
) {
  const offers = useSignal<readonly Offer[]>([]);
  const at = useSignal(0);
  const open = useComputed(() => offers.value.length > 0);
  const state = useRef<{ timer?: ReturnType<typeof setTimeout>; place?: Place; round: number }>({
    round: 0,
  });
  const close = () => {
    clearTimeout(state.current.timer);
    state.current.round++;
    offers.value = [];
  };
  const ask = async () => {
    const input = area.current;
    if (input === null || document.activeElement !== input) return;
    const place = placeAt(input.value, input.selectionStart);
    const round = ++state.current.round;
    if (place === undefined) return close();
    const found = await offersFor(place, props.sources).catch(() => []);
    if (round !== state.current.round) return;
    state.current.place = place;
    at.value = 0;
    const only = found.length === 1 && found[0]?.text === place.prefix;
    offers.value = only ? [] : found;
  };
  const take = (index: number) => {
    const input = area.current;
    const offer = offers.value[index];
    const { place } = state.current;
    if (input === null || offer === undefined || place === undefined) return;
    const quoted = offer.insert.startsWith('"') && input.value[place.to] === '"';
    input.setRangeText(offer.insert, place.from, quoted ? place.to + 1 : place.to, "end");
    close();
    props.onText(input.value, input.selectionStart);
  };
  return {
    offers,
    at,
    open,
    close,
    take,
    ask,
    later: () => {
      clearTimeout(state.current.timer);
      state.current.timer = setTimeout(() => void ask(), suggestAfterMs);
    },
    /** Puts the list below the word that it completes. */
    place: (box: HTMLDivElement | null) => {
      const input = area.current;
      if (box === null || input === null) return;
      const { from = 0 } = state.current.place ?? {};
      const { x, y } = caretAt(input, from);
      const most = Math.max(0, input.clientWidth - box.offsetWidth);
      box.style.left = `${Math.min(x, most)}px`;
      box.style.top = `${y + 4}px`;
      box.children[at.value]?.scrollIntoView({ block: "nearest" });
    },
  };
}

/** The place of an offset in the text, measured on the layer behind, which wraps in the same way. */
function caretAt(input: HTMLTextAreaElement, offset: number): { x: number; y: number } {
  const layer = input.previousElementSibling as HTMLElement;
  const walker = document.createTreeWalker(layer, NodeFilter.SHOW_TEXT);
  let left = offset;
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const length = node.textContent?.length ?? 0;
    if (left <= length) {
      const range = document.createRange();
      range.setStart(node, left);
      const box = range.getBoundingClientRect();
      const base = layer.getBoundingClientRect();
      return { x: box.left - base.left, y: box.bottom - base.top };
    }
    left -= length;
  }
  return { x: 0, y: layer.clientHeight };
}

function onKey(event: KeyboardEvent, props: EditorProps, suggest: Suggest): void {
  const { key, ctrlKey, metaKey, shiftKey } = event;
  const isRun = key === "Enter" && (ctrlKey || metaKey || !shiftKey);
  if (key === " " && ctrlKey) void suggest.ask();
  else if (suggest.open.value && onListKey(event, suggest)) event.stopPropagation();
  else if (isRun) {
    suggest.close();
    props.onRun();
  } else if (ctrlKey && (key === "ArrowUp" || key === "ArrowDown")) {
    const text = props.onHistory(key === "ArrowUp" ? 1 : -1);
    if (text !== undefined) props.onText(text, text.length);
  } else return;
  event.preventDefault();
}

/** Keys of the list of suggestions; false for all others. */
function onListKey({ key, ctrlKey }: KeyboardEvent, { offers, at, close, take }: Suggest): boolean {
  const count = offers.value.length;
  if (ctrlKey) return false;
  if (key === "ArrowDown") at.value = (at.value + 1) % count;
  else if (key === "ArrowUp") at.value = (at.value + count - 1) % count;
  else if (key === "Tab") take(at.value);
  else if (key === "Escape") close();
  else return false;
  return true;
}

/** Shows what a function does while the pointer is over it. */
function showHelp(input: HTMLTextAreaElement, event: MouseEvent, text: string): void {
  const layer = input.previousElementSibling;
  const spans = [...(layer?.children ?? [])];
  const over = spans.find((span) =>
    [...span.getClientRects()].some(
      ({ left, right, top, bottom }) =>
        event.clientX >= left &&
        event.clientX <= right &&
        event.clientY >= top &&
        event.clientY <= bottom,
    ),
  );
  const help = text === "" ? undefined : helpFor(over?.textContent ?? "");
  input.title = help === undefined ? "" : `${help.signature}\n${help.says}`;
}
