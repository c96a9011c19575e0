import type { StreamMinutes } from "@skald/contracts";
import { type LabelTable, minuteNs } from "@skald/storage";

const minuteBig = BigInt(minuteNs);

/** What a stream is named by among sources: 53 bits of its hash. */
export function streamKey({ hashes }: LabelTable, stream: number): number {
  return hashes[2 * stream]! + 2 ** 32 * (hashes[2 * stream + 1]! & 0x1fffff);
}

/** The first minute of a source whose times are counted from `baseNs`, a whole minute. */
export function firstMinute(baseNs: bigint): number {
  return Number(baseNs / minuteBig);
}

/** The minute of a time in ns since the base of a source, modulo 2^32. */
export function minuteAt(first: number, time: number): number {
  return (first + Math.floor(time / minuteNs)) >>> 0;
}

/** By stream, its minutes with their numbers in the list. */
export function numberMinutes(list: StreamMinutes): Map<number, Map<number, number>> {
  const byStream = new Map<number, Map<number, number>>();
  let at = 0;
  list.streams.forEach((stream, i) => {
    const minutes = byStream.get(stream) ?? new Map<number, number>();
    for (let left = list.counts[i]!; left > 0; left--) minutes.set(list.minutes[at]!, at++);
    byStream.set(stream, minutes);
  });
  return byStream;
}

/** The lists of minutes of some streams, as columns. */
export function streamMinutes(byStream: ReadonlyMap<number, readonly number[]>): StreamMinutes {
  const lists = [...byStream.values()];
  return {
    streams: Float64Array.from(byStream.keys()),
    counts: Uint32Array.from(lists, ({ length }) => length),
    minutes: Uint32Array.from(lists.flat()),
  };
}
