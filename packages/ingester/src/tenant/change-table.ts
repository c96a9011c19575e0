import { randomBytes } from "node:crypto";
import { floorDiv, type TimeRange } from "@skald/model";
import type { HeadBlock } from "@skald/storage";
import type { HeadGrowth } from "../head/head.js";

/** Length of a minute, ns. */
const minuteNs = 60_000_000_000;
const minutesPerHour = 60;
/** Most minutes, and most hours, that are kept. */
const maxSlots = 4096;

const run = randomBytes(8).toString("hex");
let tables = 0;

/**
 * The changes of a tenant by the minute of the rows: pushes are counted, and each minute has the number of the last push with
 * a row in it. With very many minutes it keeps hours instead, and with very many hours nothing, so that its size is
 * bounded and it reports too many changes rather than too few.
 */
export class ChangeTable {
  readonly #id = `${run}.${(tables++).toString(36)}`;
  /** The last push, by minute and by hour since the epoch. */
  readonly #minutes = new Map<number, number>();
  readonly #hours = new Map<number, number>();
  /** The last push whose minutes are not kept. */
  #anywhere = 0;
  #pushes = 0;

  /** Identifies the rows that were written so far. */
  get token(): string {
    return `${this.#id}.${this.#pushes}`;
  }

  /** Notes a push with rows in some minutes since the epoch; a minute may occur more than once. */
  note(minutes: readonly number[]): void {
    this.#pushes++;
    for (const minute of minutes) this.#minutes.set(minute, this.#pushes);
    if (this.#minutes.size > maxSlots) this.#coarsen();
  }

  /** Notes the rows of a push; must be called in the turn in which they become visible. */
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

  /** Returns the parts of a range where rows were written after a token, in order; the whole range when it is unknown. */
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
    // A long range has more minutes than are kept.
    const isShort = to - from <= this.#minutes.size + minutesPerHour * this.#hours.size;
    const minutes = isShort
      ? Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i)
      : this.#marked().filter((minute) => minute >= from && minute <= to);
    return minutes.filter(isChanged).map((minute) => BigInt(minute) * BigInt(minuteNs));
  }

  /** All minutes that are kept, ascending; the minutes of each hour too. */
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

/** Adds the minutes of times, which are ns since the start of a day; neighbours of one minute add it once. */
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
