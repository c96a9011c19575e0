import type { PlacedHashes, RowHashTask } from "@skald/contracts";
import { type LocalRef, minuteNs } from "@skald/storage";
import { firstMinute, minuteAt, numberMinutes, streamKey } from "../source/minutes.js";
import type { OpenSource } from "../source/source.js";
import type { ScanContext } from "../source/view.js";
import { blocksWithin, hashesOfBlock } from "./minute-digests.js";

/** Finds the rows of the minutes that are asked for, and hashes them. */
export function placeHashes(
  { sources, wanted, ...range }: RowHashTask<LocalRef>,
  open: OpenSource,
  { check }: Pick<ScanContext, "check">,
): PlacedHashes {
  const numbers = numberMinutes(wanted);
  const columns: number[][] = [[], [], [], [], []];
  const [minutes, places, blocks, rows, hashes] = columns as [
    number[],
    number[],
    number[],
    number[],
    number[],
  ];
  sources.forEach(({ ref }, place) => {
    const source = open(ref);
    const first = firstMinute(source.baseNs);
    const from = Number(range.fromNs - source.baseNs);
    const to = Number(range.toNs - source.baseNs);
    const byStream = wantedStreams(source.streams.match([]), (stream) =>
      numbers.get(streamKey(source.streams, stream)),
    );
    const flags = new Uint8Array(source.streams.count);
    for (const stream of byStream.keys()) flags[stream] = 1;
    for (const block of blocksWithin(source, flags, from, to)) {
      check();
      const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
      let made: ReturnType<typeof hashesOfBlock> | undefined;
      for (let run = 0; run < count; run++) {
        const own = byStream.get(stream[run]!);
        if (own === undefined || !touches(own, first, minTime[run]!, maxTime[run]!)) continue;
        const times = source.block(block).timestamps();
        for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
          const time = times[row]!;
          if (time < from || time >= to) continue;
          const number = own.get(minuteAt(first, time));
          if (number === undefined) continue;
          made ??= hashesOfBlock(source, block);
          minutes.push(number);
          places.push(place);
          blocks.push(block);
          rows.push(row);
          hashes.push(made.low[row]! >>> 0, made.high[row]! >>> 0);
        }
      }
    }
  });
  return {
    minute: Uint32Array.from(minutes),
    source: Uint32Array.from(places),
    block: Uint32Array.from(blocks),
    row: Uint32Array.from(rows),
    hashes: Uint32Array.from(hashes),
  };
}

function wantedStreams<T>(
  streams: Uint32Array,
  find: (stream: number) => T | undefined,
): Map<number, T> {
  const found = new Map<number, T>();
  for (const stream of streams) {
    const own = find(stream);
    if (own !== undefined) found.set(stream, own);
  }
  return found;
}

/** Whether a stretch of time touches a minute that is wanted. */
function touches(
  wanted: ReadonlyMap<number, number>,
  first: number,
  minTime: number,
  maxTime: number,
): boolean {
  const last = Math.floor(maxTime / minuteNs);
  for (let minute = Math.floor(minTime / minuteNs); minute <= last; minute++) {
    if (wanted.has((first + minute) >>> 0)) return true;
  }
  return false;
}
