import { batch, effect, signal } from "@preact/signals";
import { fetchLines } from "../api/lines.js";
import { type Poll, Tail } from "../api/tail.js";
import { LiveRing } from "../lines/live-ring.js";
import { Paging } from "../lines/paging.js";
import { tryParse } from "../query/derive.js";
import { linesMax } from "../state/config.js";
import { draft, navigate } from "../state/explore.js";
import { grown } from "./ask.js";
import { liveSource, selected, selection } from "./list-state.js";
import { live, liveOver, livePause, liveRestart } from "./live-state.js";
import { cancel, noteAsked } from "./run.js";

const ringMax = 50_000;
const drawEveryMs = 100;
const rateOverMs = 2000;

export interface LiveInfo {
  /** Lines per second. */
  readonly rate: number;
  readonly dropped: number;
  readonly waiting: number;
  /** Why the connection is not there. */
  readonly broken: string | undefined;
}

const silent: LiveInfo = { rate: 0, dropped: 0, waiting: 0, broken: undefined };

export const liveInfo = signal<LiveInfo>(silent);

let tail: Tail | undefined;
let ring = new LiveRing(ringMax);
let timer: ReturnType<typeof setInterval> | undefined;

/** Starts a live view of the query in the editor, or ends it and keeps its lines. */
export function toggleLive(): void {
  if (live.peek()) endLive();
  else startLive();
}

function startLive(): void {
  const text = draft.peek().trim();
  if (tryParse(text)?.kind !== "log") return;
  stop();
  cancel();
  const mine = new LiveRing(ringMax);
  ring = mine;
  batch(() => {
    live.value = true;
    livePause.value = false;
    liveInfo.value = silent;
    liveSource.value = mine;
  });
  navigate({ q: text, line: "", view: "lines" });
  noteAsked();
  let came = 0;
  let dropped = 0;
  let broken: string | undefined;
  const since = String(BigInt(Date.now()) * 1_000_000n);
  tail = new Tail(text, since, pollOf(text), {
    onLines: (lines, first) => {
      came += lines.length;
      if (first) mine.reconnect(lines[0]?.ns ?? since);
      mine.add(lines, first);
    },
    onDropped: (count) => {
      dropped += count;
    },
    onBroken: (reason) => {
      broken = reason;
    },
  });
  let rate = 0;
  let rateAt = performance.now();
  timer = setInterval(() => {
    const elapsed = performance.now() - rateAt;
    if (elapsed >= rateOverMs) {
      rate = Math.round((came * 1000) / elapsed);
      came = 0;
      rateAt = performance.now();
    }
    const gone = mine.flush();
    const info = { rate, dropped: dropped + mine.lost, waiting: mine.waiting, broken };
    if (JSON.stringify(info) !== JSON.stringify(liveInfo.peek())) liveInfo.value = info;
    if (gone === undefined) return;
    if (gone > 0) {
      selection.clear();
      selected.value++;
    }
    grown.value++;
  }, drawEveryMs);
}

/** Asks for the lines of a span where no connection can be held: all of them, up to what the view holds. */
function pollOf(query: string): Poll {
  return async (startNs, endNs) => {
    const size = linesMax.peek();
    const paging = new Paging({
      ...{ query, startNs, endNs, direction: "forward", size, limitMax: size, heldMax: ringMax },
      fetch: (one) => fetchLines(one),
    });
    while (!paging.done && paging.count < ringMax) await paging.more();
    return Array.from({ length: paging.count }, (_, at) => paging.at(at)).filter(
      (line) => line !== undefined,
    );
  };
}

function stop(): void {
  tail?.close();
  tail = undefined;
  clearInterval(timer);
}

/** Ends the live view. Its lines stay, and the range becomes theirs. */
function endLive(): void {
  stop();
  ring.paused = false;
  ring.flush();
  const [first, last] = [ring.at(0), ring.at(ring.count - 1)];
  batch(() => {
    live.value = false;
    livePause.value = false;
    grown.value++;
    if (first !== undefined && last !== undefined) {
      navigate({ from: first.ns, to: String(BigInt(last.ns) + 1n) }, "replace");
      noteAsked();
    }
  });
}

/** Ends the live view because the page goes elsewhere. */
export function leaveLive(): void {
  stop();
  batch(() => {
    live.value = false;
    livePause.value = false;
  });
}

/** Goes on after a pause. */
export function resumeLive(): void {
  livePause.value = false;
  grown.value++;
}

export function clearLive(): void {
  ring.clear();
  selection.clear();
  grown.value++;
}

export function startLiveState(): void {
  liveRestart.value = startLive;
  effect(() => {
    ring.paused = livePause.value;
  });
  effect(() => {
    liveOver.value;
    liveSource.value = undefined;
  });
}
