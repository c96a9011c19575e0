import type { RowMask, SkippedMinutes } from "@skald/contracts";
import type { BlockRange } from "@skald/storage";
import { minuteNs } from "@skald/storage";
import { firstMinute, minuteAt, numberMinutes, streamKey } from "./minutes.js";
import type { Source } from "./source.js";

/** The rows of some streams, in some blocks, that lie in minutes to leave out. Reads times of runs that are cut only. */
export function skipRows(
  source: Source,
  { all, some }: SkippedMinutes,
  selected: Uint32Array,
  blocks: BlockRange,
): RowMask {
  const everywhere = new Set<number>();
  for (let i = 0; i < all.length; i += 2) {
    for (let minute = all[i]!; minute < all[i + 1]!; minute++) everywhere.add(minute);
  }
  const byStream = numberMinutes(some);
  const first = firstMinute(source.baseNs);
  const own = new Map<number, ReadonlyMap<number, number> | undefined>();
  for (const stream of selected) own.set(stream, byStream.get(streamKey(source.streams, stream)));
  const found: { block: number; rows: number[] }[] = [];
  for (let block = blocks.from; block < blocks.to; block++) {
    const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
    const rows: number[] = [];
    for (let run = 0; run < count; run++) {
      if (!own.has(stream[run]!)) continue;
      const minutes = own.get(stream[run]!);
      const isSkipped = (minute: number) =>
        everywhere.has(minute) || (minutes !== undefined && minutes.has(minute));
      const cover = coverOf(isSkipped, first, minTime[run]!, maxTime[run]!);
      if (cover === "none") continue;
      const times = cover === "all" ? undefined : source.block(block).timestamps();
      for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
        if (times === undefined || isSkipped(minuteAt(first, times[row]!))) rows.push(row);
      }
    }
    if (rows.length > 0) found.push({ block, rows });
  }
  return {
    blocks: Uint32Array.from(found, ({ block }) => block),
    // Runs of a head are in no order.
    rows: found.map(({ rows }) => Uint32Array.from(rows).sort()),
  };
}

/** How much of a stretch of time lies in minutes to leave out. */
function coverOf(
  isSkipped: (minute: number) => boolean,
  first: number,
  minTime: number,
  maxTime: number,
): "none" | "part" | "all" {
  const last = Math.floor(maxTime / minuteNs);
  let skipped = 0;
  let minutes = 0;
  for (let minute = Math.floor(minTime / minuteNs); minute <= last; minute++) {
    minutes++;
    if (isSkipped((first + minute) >>> 0)) skipped++;
  }
  return skipped === 0 ? "none" : skipped === minutes ? "all" : "part";
}
