import type { DigestTask, MinuteDigests, PlacedHashes, RowHashTask } from "@skald/contracts";
import type { TimeRange } from "@skald/model";
import { hashBlockRows, type LocalRef, minuteNs, type RowHashes } from "@skald/storage";
import { LRUCache } from "lru-cache";
import type { ScanContext } from "../source/block-reader.js";
import { firstMinute, minuteAt, numberMinutes, streamKey } from "../source/row-mask.js";
import type { OpenSource, Source } from "../source/source.js";
import { flagsOf } from "../source/view.js";

/** Memory for digests of blocks: full blocks of heads, and blocks of segments with streams that have no digests. */
const maxRememberedBytes = 16 * 1024 * 1024;

const minutesPerDay = 24 * 60;

/** The digests of one block, by run and minute. */
interface BlockDigests {
  readonly stream: Uint32Array;
  readonly minute: Uint32Array;
  readonly rows: Uint32Array;
  readonly sums: Uint32Array;
}

/** Hashes blocks whose source has no digests, each once while it is remembered. */
export class BlockDigestCache {
  readonly #known = new LRUCache<string, BlockDigests>({
    maxSize: maxRememberedBytes,
    sizeCalculation: ({ sums }) => sums.byteLength * 3 + 200,
  });

  of(source: Source, block: number): BlockDigests {
    const { rowStart, count } = source.runs(block);
    const number = source.numberOf?.(block) ?? block;
    // A segment has the id of its head. A block of a head may have more rows than the last time.
    const key = `${source.kind} ${source.id} ${number} ${rowStart[count]}`;
    let digests = this.#known.get(key);
    if (digests === undefined) {
      digests = digestBlock(source, block);
      this.#known.set(key, digests);
    }
    return digests;
  }
}

/** Adds up the digests of the streams of a task in all sources, minute by minute. */
export function digestSources(
  { sources, matchers, minutesEach, ...range }: DigestTask<LocalRef>,
  open: OpenSource,
  { check }: Pick<ScanContext, "check">,
  blocks: BlockDigestCache,
): MinuteDigests {
  const sums = new DigestSums(Math.max(1, minutesEach));
  for (const { ref } of sources) {
    check();
    const source = open(ref);
    const selected = source.streams.match(matchers);
    const first = firstMinute(source.baseNs);
    const { from, to } = minutesWithin(source, range);
    if (from >= to) continue;
    const rest = selected.filter((stream) => {
      const digests = source.digests?.(stream);
      if (digests === undefined) return true;
      const key = streamKey(source.streams, stream);
      digests.minutes.forEach((minute, i) => {
        if (minute < from || minute >= to) return;
        const [low, high] = [digests.sums[2 * i]!, digests.sums[2 * i + 1]!];
        sums.add(key, (first + minute) >>> 0, digests.rows[i]!, low, high);
      });
      return false;
    });
    if (rest.length === 0) continue;
    const wanted = flagsOf(rest, source.streams.count);
    for (const block of blocksWithin(source, wanted, from * minuteNs, to * minuteNs)) {
      check();
      const { stream, minute, rows, sums: own } = blocks.of(source, block);
      for (let i = 0; i < stream.length; i++) {
        if (wanted[stream[i]!] !== 1) continue;
        if (minute[i]! < (first + from) >>> 0 || minute[i]! >= (first + to) >>> 0) continue;
        const key = streamKey(source.streams, stream[i]!);
        sums.add(key, minute[i]!, rows[i]!, own[2 * i]!, own[2 * i + 1]!);
      }
    }
  }
  return sums.finish();
}

/** The blocks with rows of some streams in [from, to), ns since the base. */
export function blocksWithin(
  source: Source,
  wanted: Uint8Array,
  from: number,
  to: number,
): number[] {
  const found: number[] = [];
  for (let block = 0; block < source.blockCount; block++) {
    const { count, stream, minTime, maxTime } = source.runs(block);
    for (let run = 0; run < count; run++) {
      if (wanted[stream[run]!] !== 1 || maxTime[run]! < from || minTime[run]! >= to) continue;
      found.push(block);
      break;
    }
  }
  return found;
}

/** The hashes of the rows of a block. */
export function hashesOfBlock(source: Source, number: number): RowHashes {
  const block = source.block(number);
  const metadata = block.metadataNames().flatMap((name) => {
    const column = block.metadata(name);
    return column === undefined ? [] : [[name, column] as const];
  });
  return hashBlockRows({
    rowCount: block.rowCount,
    timestamps: block.timestamps(),
    lines: block.lines(),
    metadata,
  });
}

/** The minutes of the source's day that a range touches, [from, to). */
function minutesWithin({ baseNs }: Source, { fromNs, toNs }: TimeRange) {
  return {
    from: Math.max(0, Math.floor(Number(fromNs - baseNs) / minuteNs)),
    to: Math.min(minutesPerDay, Math.ceil(Number(toNs - baseNs) / minuteNs)),
  };
}

function digestBlock(source: Source, number: number): BlockDigests {
  const { count, stream, rowStart } = source.runs(number);
  const times = source.block(number).timestamps();
  const { low, high } = hashesOfBlock(source, number);
  const first = firstMinute(source.baseNs);
  const found = { stream: [] as number[], minute: [] as number[], rows: [] as number[] };
  const sums: number[] = [];
  for (let run = 0; run < count; run++) {
    for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
      const minute = minuteAt(first, times[row]!);
      const last = found.rows.length - 1;
      if (row > rowStart[run]! && found.minute[last] === minute) {
        found.rows[last]! += 1;
        sums[2 * last] = (sums[2 * last]! + low[row]!) >>> 0;
        sums[2 * last + 1] = (sums[2 * last + 1]! + high[row]!) >>> 0;
        continue;
      }
      found.stream.push(stream[run]!);
      found.minute.push(minute);
      found.rows.push(1);
      sums.push(low[row]! >>> 0, high[row]! >>> 0);
    }
  }
  return {
    stream: Uint32Array.from(found.stream),
    minute: Uint32Array.from(found.minute),
    rows: Uint32Array.from(found.rows),
    sums: Uint32Array.from(sums),
  };
}

/** Sums by stream and minute. */
class DigestSums {
  readonly #minutesEach: number;
  readonly #places = new Map<number, Map<number, number>>();
  readonly #rows: number[] = [];
  readonly #sums: number[] = [];

  constructor(minutesEach: number) {
    this.#minutesEach = minutesEach;
  }

  add(stream: number, at: number, rows: number, low: number, high: number): void {
    const minute = at - (at % this.#minutesEach);
    let minutes = this.#places.get(stream);
    if (minutes === undefined) {
      minutes = new Map();
      this.#places.set(stream, minutes);
    }
    const place = minutes.get(minute);
    if (place === undefined) {
      minutes.set(minute, this.#rows.push(rows) - 1);
      this.#sums.push(low >>> 0, high >>> 0);
      return;
    }
    this.#rows[place]! += rows;
    this.#sums[2 * place] = (this.#sums[2 * place]! + low) >>> 0;
    this.#sums[2 * place + 1] = (this.#sums[2 * place + 1]! + high) >>> 0;
  }

  finish(): MinuteDigests {
    const lists = [...this.#places.values()];
    const places = lists.flatMap((minutes) => [...minutes.values()]);
    return {
      streams: Float64Array.from(this.#places.keys()),
      counts: Uint32Array.from(lists, ({ size }) => size),
      minutes: Uint32Array.from(lists.flatMap((minutes) => [...minutes.keys()])),
      rows: Uint32Array.from(places, (place) => this.#rows[place]!),
      sums: Uint32Array.from(
        places.flatMap((place) => [this.#sums[2 * place]!, this.#sums[2 * place + 1]!]),
      ),
    };
  }
}

/** Finds the rows of the wanted minutes and hashes them. */
export function placeHashes(
  { sources, wanted, ...range }: RowHashTask<LocalRef>,
  open: OpenSource,
  { check }: Pick<ScanContext, "check">,
): PlacedHashes {
  const numbers = numberMinutes(wanted);
  const found = {
    ...{ minute: [] as number[], source: [] as number[], block: [] as number[] },
    ...{ row: [] as number[], hashes: [] as number[] },
  };
  sources.forEach(({ ref }, place) => {
    const source = open(ref);
    const first = firstMinute(source.baseNs);
    const from = Number(range.fromNs - source.baseNs);
    const to = Number(range.toNs - source.baseNs);
    const { streams } = source;
    const byStream = new Map<number, ReadonlyMap<number, number>>();
    for (const stream of streams.match([])) {
      const own = numbers.get(streamKey(streams, stream));
      if (own !== undefined) byStream.set(stream, own);
    }
    const flags = flagsOf(Uint32Array.from(byStream.keys()), streams.count);
    for (const block of blocksWithin(source, flags, from, to)) {
      check();
      const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
      let made: RowHashes | undefined;
      for (let run = 0; run < count; run++) {
        const own = byStream.get(stream[run]!);
        if (own === undefined || !touches(own, first, minTime[run]!, maxTime[run]!)) continue;
        const times = source.block(block).timestamps();
        for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
          const time = times[row]!;
          const minute = time < from || time >= to ? undefined : own.get(minuteAt(first, time));
          if (minute === undefined) continue;
          made ??= hashesOfBlock(source, block);
          found.minute.push(minute);
          found.source.push(place);
          found.block.push(block);
          found.row.push(row);
          found.hashes.push(made.low[row]! >>> 0, made.high[row]! >>> 0);
        }
      }
    }
  });
  return {
    minute: Uint32Array.from(found.minute),
    source: Uint32Array.from(found.source),
    block: Uint32Array.from(found.block),
    row: Uint32Array.from(found.row),
    hashes: Uint32Array.from(found.hashes),
  };
}

/** Whether a stretch of time touches a wanted minute. */
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
