import { equalBytes, noTimestampSeconds, type RawPush } from "@skald/kernels";
import type { AcceptedStream } from "@skald/push";

/** The number of changed rows and of cut bytes. */
interface Altered {
  readonly rows: number;
  readonly bytes: number;
}

/**
 * Cuts lines to `maxBytes`, in place; the identifier replaces their last bytes. A line is cut between characters, so it
 * may become up to three bytes shorter.
 */
export function truncateLines(push: RawPush, maxBytes: number, identifier: string): Altered {
  const mark = new TextEncoder().encode(identifier);
  const room = mark.length < maxBytes ? maxBytes - mark.length : maxBytes;
  let rows = 0;
  let bytes = 0;
  for (let row = 0; row < push.rowCount; row++) {
    const length = push.lineLength[row]!;
    if (length <= maxBytes) continue;
    const start = push.lineStart[row]!;
    let cut = start + room;
    const least = Math.max(start, cut - 3);
    while (cut > least && (push.bytes[cut]! & 0xc0) === 0x80) cut--;
    if (room < maxBytes) {
      push.bytes.set(mark, cut);
      cut += mark.length;
    }
    push.lineLength[row] = cut - start;
    rows++;
    bytes += length - (cut - start);
  }
  return { rows, bytes };
}

/** The push without the structured metadata of its rows; `rows` had some, which took `bytes`. */
export function withoutMetadata(push: RawPush): Altered & { readonly push: RawPush } {
  let rows = 0;
  for (let row = 0; row < push.rowCount; row++)
    if (push.metaStart[row] !== push.metaStart[row + 1]) rows++;
  let bytes = 0;
  for (let pair = 0; pair < push.pairCount; pair++)
    bytes += push.metaNameLength[pair]! + push.metaValueLength[pair]!;
  const metaStart = new Uint32Array(push.rowCount + 1);
  return { rows, bytes, push: { ...push, pairCount: 0, metaStart } };
}

/**
 * Moves an entry 1 ns behind its neighbour in the stream, in place, when both have the same time and different lines, so
 * that readers keep their order. Equal lines keep equal times, because they are one entry. Returns how many rows
 * moved.
 */
export function incrementDuplicateTimestamps(
  push: RawPush,
  streams: readonly AcceptedStream[],
  dropped: Uint32Array,
): number {
  let moved = 0;
  let cut = 0;
  for (const { ordinal } of streams) {
    let previous = -1;
    let pushedSeconds = 0;
    let pushedNanos = 0;
    const end = push.streamRowStart[ordinal + 1]!;
    for (let row = push.streamRowStart[ordinal]!; row < end; row++) {
      while (cut < dropped.length && dropped[cut]! < row) cut++;
      if (dropped[cut] === row) continue;
      const seconds = push.seconds[row]!;
      const nanos = push.nanos[row]!;
      const again =
        previous >= 0 &&
        ((seconds === pushedSeconds && nanos === pushedNanos) ||
          (seconds === push.seconds[previous] && nanos === push.nanos[previous]));
      if (again && !sameLine(push, previous, row)) {
        moveBehind(push, previous, row);
        moved++;
      }
      pushedSeconds = seconds;
      pushedNanos = nanos;
      previous = row;
    }
  }
  return moved;
}

/** Times of arrival may be this far ahead of the clock; further means that the clock was set back. */
const maxAheadNs = 1_000_000_000n;
const nanosPerSecond = 1_000_000_000;

/**
 * Gives rows without a time the time of their arrival. No two rows of a process get the same time, because rows with equal
 * times and equal lines count as one row; later rows get later times.
 */
export class ArrivalTimes {
  #nextNs = 0n;

  /**
   * Sets the time of each row without one, in place. The `nanos` of these rows must be their numbers, from 0. Returns
   * whether there are any.
   */
  stamp(push: Pick<RawPush, "rowCount" | "seconds" | "nanos">, nowMs: number): boolean {
    const nowNs = BigInt(nowMs) * 1_000_000n;
    const isAhead = this.#nextNs > nowNs && this.#nextNs - nowNs <= maxAheadNs;
    const firstNs = isAhead ? this.#nextNs : nowNs;
    const firstSeconds = Number(firstNs / BigInt(nanosPerSecond));
    const firstNanos = Number(firstNs % BigInt(nanosPerSecond));
    let rows = 0;
    for (let row = 0; row < push.rowCount; row++) {
      if (push.seconds[row] !== noTimestampSeconds) continue;
      const nanos = firstNanos + push.nanos[row]!;
      push.seconds[row] = firstSeconds + Math.floor(nanos / nanosPerSecond);
      push.nanos[row] = nanos % nanosPerSecond;
      rows++;
    }
    if (rows > 0) this.#nextNs = firstNs + BigInt(rows);
    return rows > 0;
  }
}

function sameLine(push: RawPush, a: number, b: number): boolean {
  const length = push.lineLength[a]!;
  return (
    length === push.lineLength[b] &&
    equalBytes(push.bytes, push.lineStart[a]!, push.bytes, push.lineStart[b]!, length)
  );
}

function moveBehind(push: RawPush, previous: number, row: number): void {
  const nanos = push.nanos[previous]! + 1;
  const carries = nanos === 1_000_000_000;
  push.nanos[row] = carries ? 0 : nanos;
  push.seconds[row] = push.seconds[previous]! + (carries ? 1 : 0);
}
