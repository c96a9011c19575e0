import { minuteNs, type RowHashes, type StreamDigests } from "@skald/storage";
import type { Source } from "../source/source.js";
import { hashesOfBlock } from "./minute-digests.js";

/** What digests say of the rows of one stream in two sources. */
export interface Agreement {
  /** Minutes whose rows are the same in both. */
  readonly same: ReadonlySet<number>;
  /** Stretches of minutes, ascending, `from .. to)` in ns since the base, in which rows must be compared. */
  readonly open: readonly { readonly from: number; readonly to: number }[];
  /** Minutes in which the newer source has rows. */
  readonly minutes: Float64Array;
}

/** Compares the digests of a stream: where one source has no rows, there is nothing to compare. */
export function agreementOf(older: StreamDigests, newer: StreamDigests): Agreement {
  const same = new Set<number>();
  const open: { from: number; to: number }[] = [];
  let at = 0;
  for (let i = 0; i < newer.minutes.length; i++) {
    const minute = newer.minutes[i]!;
    while (at < older.minutes.length && older.minutes[at]! < minute) at++;
    if (older.minutes[at] !== minute) continue;
    const isSame =
      older.rows[at] === newer.rows[i] &&
      older.sums[2 * at] === newer.sums[2 * i] &&
      older.sums[2 * at + 1] === newer.sums[2 * i + 1];
    const last = open.at(-1);
    if (isSame) same.add(minute);
    else if (last?.to === minute * minuteNs) last.to += minuteNs;
    else open.push({ from: minute * minuteNs, to: (minute + 1) * minuteNs });
  }
  return { same, open, minutes: newer.minutes };
}

/** Whether all rows between two times, both inclusive, lie in minutes that are the same. */
export function isSameBetween({ same, minutes }: Agreement, minTime: number, maxTime: number) {
  const first = Math.floor(minTime / minuteNs);
  const last = Math.floor(maxTime / minuteNs);
  return minutes.every((minute) => minute < first || minute > last || same.has(minute));
}

/** The digests of heads, made of their rows when a segment has some to hold against them. */
export class HeadDigests {
  readonly #source: Source;
  readonly #hashes = new Map<number, RowHashes>();

  constructor(source: Source) {
    this.#source = source;
  }

  /** Of the rows of some runs of a stream. */
  of(
    runs: readonly { readonly block: number; readonly from: number; readonly to: number }[],
  ): StreamDigests {
    const digests = new Map<number, { rows: number; low: number; high: number }>();
    for (const { block, from, to } of runs) {
      const times = this.#source.block(block).timestamps();
      const { high, low } = this.#hashesOf(block);
      for (let row = from; row < to; row++) {
        const minute = Math.floor(times[row]! / minuteNs);
        const digest = digests.get(minute) ?? { rows: 0, low: 0, high: 0 };
        digest.rows++;
        digest.low = (digest.low + low[row]!) >>> 0;
        digest.high = (digest.high + high[row]!) >>> 0;
        digests.set(minute, digest);
      }
    }
    const minutes = Float64Array.from(digests.keys()).sort();
    const ordered = Array.from(minutes, (minute) => digests.get(minute)!);
    return {
      minutes,
      rows: Float64Array.from(ordered, ({ rows }) => rows),
      sums: Uint32Array.from(ordered.flatMap(({ low, high }) => [low, high])),
    };
  }

  #hashesOf(number: number): RowHashes {
    let hashes = this.#hashes.get(number);
    if (hashes === undefined) {
      hashes = hashesOfBlock(this.#source, number);
      this.#hashes.set(number, hashes);
    }
    return hashes;
  }
}
