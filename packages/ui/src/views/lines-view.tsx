import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { answer, grown } from "../answer/ask.js";
import {
  liveSource,
  opened,
  openRow,
  pickRow,
  selected,
  selection,
  shownLines,
  source,
} from "../answer/list-state.js";
import { livePause } from "../answer/live-state.js";
import { loadMore, restore } from "../answer/run.js";
import { LineList } from "../lines/line-list.js";
import { orderFor, type RowLook } from "../lines/row.js";
import { namedFields, needlesOf } from "../query/derive.js";
import { raw, wrap, zone } from "../state/explore.js";

/** Screens of lines that are left when the next page is asked for. */
const screensAhead = 3;

function currentLook(): RowLook {
  const log = answer.value?.log;
  const lines = shownLines(200);
  const [first, last] = [lines[0], lines.at(-1)];
  const dayOf = (ns: string | undefined) =>
    ns === undefined ? "" : Math.floor(Number(ns) / 8.64e13);
  return {
    zone: zone.value,
    dated: dayOf(first?.ns) !== dayOf(last?.ns),
    raw: raw.value,
    wrap: wrap.value,
    order: orderFor(lines, log === undefined ? [] : namedFields(log)),
    needles: log === undefined ? undefined : needlesOf(log),
  };
}

/** The lines, as a list that has any number of them. */
export function LinesView() {
  const host = useRef<HTMLDivElement>(null);
  const list = useRef<LineList>(undefined);
  list.current ??= new LineList({
    onPick: (index, how) => {
      livePause.value = liveSource.peek() !== undefined;
      if (how.extend || how.toggle) pickRow(index, how);
      else openRow(index);
    },
    onView: (_, last) => {
      const held = source.peek();
      if (liveSource.peek() !== undefined) return;
      const ahead = screensAhead * (list.current?.rowsInView ?? 30);
      if (last + ahead >= held.count) void loadMore();
      if (last < held.count && held.at(last) === undefined) void restore(last);
    },
    onScroll: (up) => {
      if (liveSource.peek() !== undefined && up) livePause.value = true;
    },
  });
  const { element } = list.current;
  useEffect(() => {
    host.current?.append(element);
    const observer = new ResizeObserver(() => list.current?.resize());
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useSignalEffect(() => {
    const look = currentLook();
    const lines = source.value;
    list.current?.set(lines, look);
    element.classList.toggle("tinted", isMostlyGood());
  });
  useSignalEffect(() => {
    grown.value;
    list.current?.grow(source.peek(), liveSource.peek() !== undefined && !livePause.peek());
  });
  useSignalEffect(() => {
    selected.value;
    list.current?.mark(selection.at, selection.has);
    if (selection.at >= 0) list.current?.reveal(selection.at);
  });
  useSignalEffect(() => {
    opened.value;
    requestAnimationFrame(() => list.current?.refresh());
  });
  return <div class="list-host" ref={host} />;
}

/** Rows of errors stand out only where they are the smaller part. */
function isMostlyGood(): boolean {
  const lines = shownLines(200);
  const bad = lines.filter(({ level }) => level === "error" || level === "critical").length;
  return bad * 2 <= lines.length;
}
