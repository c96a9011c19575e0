import { type SteadyClock, steadyClock } from "@skald/model/time";
import type { Output } from "./command.js";

const barWidth = 30;
/** Steps of the bar on a terminal. */
const terminalSteps = 1000;
const linePauseMs = 10_000;
/** Before this time what is left cannot be told from what is done. */
const guessAfterMs = 1000;

export interface ProgressTotal {
  /** Undefined if nobody knows how much there is. */
  readonly bytes: number | undefined;
  /** The parts of the work: files, slices of time. */
  readonly parts?: number;
  /** What a part is called; default: files. */
  readonly partName?: string;
}

/** Shows how far a long work is, and the time left: a bar on a terminal, a line every ten seconds elsewhere. */
export class Progress {
  readonly #out: Output;
  readonly #total: ProgressTotal;
  readonly #clock: SteadyClock;
  readonly #startMs: number;
  #doneBytes = 0;
  #doneParts = 0;
  #shownStep = 0;
  #shownMs: number;

  constructor(out: Output, total: ProgressTotal, clock: SteadyClock = steadyClock) {
    this.#out = out;
    this.#total = total;
    this.#clock = clock;
    this.#startMs = clock.elapsedMs();
    this.#shownMs = this.#startMs;
  }

  add(bytes: number): void {
    this.#doneBytes = Math.min(this.#doneBytes + bytes, this.#total.bytes ?? Infinity);
    this.#show();
  }

  /** A part is done; `restBytes` of it were not counted yet. */
  addPart(restBytes: number): void {
    this.#doneParts++;
    this.add(restBytes);
  }

  /** Takes the bar away; elsewhere writes the last line. */
  finish(): void {
    if (this.#out.isTTY === true) this.#out.write("\r\x1b[K");
    else this.#out.write(`${this.#text(this.#clock.elapsedMs())}\n`);
  }

  /** How much of the work is done, from 0 to 1. */
  get #part(): number {
    const { bytes, parts } = this.#total;
    if (bytes !== undefined) return bytes === 0 ? 1 : this.#doneBytes / bytes;
    return parts === undefined || parts === 0 ? 0 : this.#doneParts / parts;
  }

  #show(): void {
    const nowMs = this.#clock.elapsedMs();
    if (this.#out.isTTY !== true) {
      if (nowMs - this.#shownMs < linePauseMs) return;
      this.#shownMs = nowMs;
      this.#out.write(`${this.#text(nowMs)}\n`);
      return;
    }
    const step = this.#hasEnd ? Math.floor(this.#part * terminalSteps) : Math.floor(nowMs / 100);
    if (step === this.#shownStep) return;
    this.#shownStep = step;
    const bar = "#".repeat(Math.floor(this.#part * barWidth)).padEnd(barWidth, ".");
    this.#out.write(`\r\x1b[K${this.#hasEnd ? `[${bar}] ` : ""}${this.#text(nowMs)}`);
  }

  get #hasEnd(): boolean {
    return this.#total.bytes !== undefined || this.#total.parts !== undefined;
  }

  #text(nowMs: number): string {
    const { bytes, parts, partName = "files" } = this.#total;
    const percent = this.#hasEnd ? [`${Math.floor(this.#part * 100)} %`] : [];
    const done = parts === undefined ? [] : [`${this.#doneParts} of ${parts} ${partName}`];
    const size = sizeText(this.#doneBytes);
    const sizes = bytes === undefined ? size : `${size} of ${sizeText(bytes)}`;
    const spentMs = nowMs - this.#startMs;
    const leftMs = (spentMs / this.#part) * (1 - this.#part);
    const isKnown = spentMs >= guessAfterMs && this.#part > 0 && this.#part < 1;
    const left = isKnown && this.#hasEnd ? [`${timeText(leftMs)} left`] : [];
    return [...percent, ...done, sizes, ...left].join(", ");
  }
}

/** `1.5 GiB` */
export function sizeText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** `12 s`, `3 min 20 s`, `2 h 5 min` */
function timeText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
