import { randomBytes } from "node:crypto";
import { floorDiv, type TimeRange } from "@skald/model";
import type { HeadBlock } from "@skald/storage";
import type { HeadGrowth } from "../head/head.js";

/** Length of a minute, ns. */
const minuteNs = 60_000_000_000;
const minutesPerHour = 60;
/** Minutes, and as many hours, that are told apart. */
const maxSlots = 4096;

const run = randomBytes(8).toString("hex");
let tables = 0;

/**
 * When rows of a tenant were written last, by the minute that they are of: pushes are counted, and each minute has the
 * number of the last one with a row in it. Where rows are of very many minutes, hours are told apart instead, and in the
 * end nothing is, so that it takes a bounded amount of memory and never says too little.
 */
export class ChangeTable {
  readonly #id = `${run}.${(tables++).toString(36)}`;
  /** By number of the minute and of the hour since the epoch, the last push. */
  readonly #minutes = new Map<number, number>();
  readonly #hours = new Map<number, number>();
  /** The last push of those that are not told apart. */
  #anywhere = 0;
  #pushes = 0;

  /** Stands for everything that was written so far. */
  get token(): string {
    return `${this.#id}.${this.#pushes}`;
  }

  /** Takes note of a push with rows in some minutes since the epoch, which may be named more than once. */
  note(minutes: readonly number[]): void {
    this.#pushes++;
    for (const minute of minutes) this.#minutes.set(minute, this.#pushes);
    if (this.#minutes.size > maxSlots) this.#coarsen();
  }

  /** Takes note of the rows that a push has put into heads, in the turn in which they can be seen first. */
  noteGrowth(growths: Iterable<HeadGrowth>): void {
    const minutes: number[] = [];
    for (const { head, before, after } of growths) {
      const firstMinute = Number(head.baseNs / BigInt(minuteNs));
      const first = Math.max(0, before.blocks - 1);
      for (let i = first; i < after.blocks; i++) {
        const block = head.blocks[i] as HeadBlock;
        const from = i === before.blocks - 1 ? before.rows : 0;
        const to = i === after.blocks - 1 ? after.rows : block.rowCount;
        addMinutes(minutes, block.columns.timestamps.subarray(from, to), firstMinute);
      }
    }
    this.note(minutes);
  }

  /** Where rows were written since a token was given, in order; all of the range when it is not known. */
  since(token: string | undefined, range: TimeRange): TimeRange[] {
    const before = this.#pushesAt(token);
    if (before === undefined || this.#anywhere > before) return [range];
    const changed: { fromNs: bigint; toNs: bigint }[] = [];
    for (const fromNs of this.#changedMinutes(before, range)) {
      const toNs = fromNs + BigInt(minuteNs);
      const last = changed.at(-1);
      if (last?.toNs === fromNs) last.toNs = toNs;
      else changed.push({ fromNs, toNs });
    }
    return changed;
  }

  #pushesAt(token: string | undefined): number | undefined {
    if (token === undefined || !token.startsWith(`${this.#id}.`)) return undefined;
    const pushes = Number(token.slice(this.#id.length + 1));
    return Number.isInteger(pushes) ? pushes : undefined;
  }

  #changedMinutes(before: number, { fromNs, toNs }: TimeRange): bigint[] {
    const from = minuteOf(fromNs);
    const to = minuteOf(toNs - 1n);
    const isChanged = (minute: number) =>
      (this.#minutes.get(minute) ?? 0) > before ||
      (this.#hours.get(Math.floor(minute / minutesPerHour)) ?? 0) > before;
    // A long range has more minutes than there are marks.
    const isShort = to - from <= this.#minutes.size + minutesPerHour * this.#hours.size;
    const minutes = isShort
      ? Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i)
      : this.#marked().filter((minute) => minute >= from && minute <= to);
    return minutes.filter(isChanged).map((minute) => BigInt(minute) * BigInt(minuteNs));
  }

  /** All minutes that have a mark, ascending. */
  #marked(): number[] {
    const minutes = new Set(this.#minutes.keys());
    for (const hour of this.#hours.keys()) {
      for (let i = 0; i < minutesPerHour; i++) minutes.add(hour * minutesPerHour + i);
    }
    return [...minutes].sort((a, b) => a - b);
  }

  #coarsen(): void {
    for (const [minute, push] of this.#minutes) {
      const hour = Math.floor(minute / minutesPerHour);
      this.#hours.set(hour, Math.max(push, this.#hours.get(hour) ?? 0));
    }
    this.#minutes.clear();
    if (this.#hours.size <= maxSlots) return;
    this.#hours.clear();
    this.#anywhere = this.#pushes;
  }
}

function minuteOf(ns: bigint): number {
  return Number(floorDiv(ns, BigInt(minuteNs)));
}

/** Adds the minutes of some times in ns since the start of a day, each stretch of one minute once. */
function addMinutes(minutes: number[], times: Float64Array, firstMinute: number): void {
  let low = 0;
  let high = 0;
  for (let i = 0; i < times.length; i++) {
    const time = times[i]!;
    if (time >= low && time < high) continue;
    const minute = Math.floor(time / minuteNs);
    low = minute * minuteNs;
    high = low + minuteNs;
    minutes.push(firstMinute + minute);
  }
}
