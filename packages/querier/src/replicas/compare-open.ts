import type {
  MinuteDigests,
  PlacedHashes,
  RowMask,
  SkippedMinutes,
  SourceRef,
  StreamMinutes,
} from "@skald/contracts";
import { numberMinutes, streamMinutes } from "@skald/scan";
import type { FoundSource, ReplicaGroup } from "../find/order-sources.js";

/** Rows whose hashes are held at a time: 24 bytes each. */
const maxRowsAtOnce = 500_000;

/**
 * Sources that are in one place: an ingester, whose own duplicates it finds itself, or one segment of the store. A row
 * counts where its place comes first: segments of the store, then ingesters, in an order that turns with time.
 */
export interface Place {
  readonly sources: readonly FoundSource[];
  /** Absent for a segment of the store. */
  readonly instance: string | undefined;
}

/** A minute of a stream in which places have different rows. */
export interface OpenMinute {
  readonly stream: number;
  readonly minute: number;
  /** Numbers of places, in the order in which they count. */
  readonly places: readonly number[];
  /** Rows of all of them. */
  readonly rows: number;
}

export interface HashCall {
  /** Hashes of rows in some minutes of sources that are in one place. */
  rowHashes(
    sources: readonly FoundSource[],
    wanted: StreamMinutes,
    range: ReplicaGroup,
  ): Promise<PlacedHashes>;
}

/** Finds the rows of ingesters that a place before them has too, in minutes that are not the same. */
export async function compareOpen(
  places: readonly Place[],
  open: readonly OpenMinute[],
  range: ReplicaGroup,
  calls: HashCall,
): Promise<Map<SourceRef, RowMask>> {
  const found = new Map<SourceRef, Map<number, number[]>>();
  for (const some of batches(open)) {
    const hashes = await Promise.all(
      places.map(({ sources }, place) => hashesOf(sources, place, some, range, calls)),
    );
    for (const one of some) compareMinute(one, places, hashes, found);
  }
  return new Map([...found].map(([ref, rows]) => [ref, maskOf(rows)]));
}

/** The rows of one place, by stream and minute. */
interface PlaceHashes {
  readonly rows: PlacedHashes;
  /** Rows of a minute: numbers in the columns. */
  readonly byMinute: ReadonlyMap<OpenMinute, readonly number[]>;
}

async function hashesOf(
  sources: readonly FoundSource[],
  place: number,
  open: readonly OpenMinute[],
  range: ReplicaGroup,
  calls: HashCall,
): Promise<PlaceHashes | undefined> {
  const byStream = new Map<number, OpenMinute[]>();
  for (const one of open) {
    if (!one.places.includes(place)) continue;
    const known = byStream.get(one.stream);
    if (known === undefined) byStream.set(one.stream, [one]);
    else known.push(one);
  }
  if (byStream.size === 0) return undefined;
  const minutes = [...byStream].map(
    ([stream, own]) => [stream, own.map(({ minute }) => minute)] as const,
  );
  const rows = await calls.rowHashes(sources, streamMinutes(new Map(minutes)), range);
  const asked = [...byStream.values()].flat();
  const byMinute = new Map<OpenMinute, number[]>();
  rows.minute.forEach((number, row) => {
    const one = asked[number] as OpenMinute;
    const known = byMinute.get(one);
    if (known === undefined) byMinute.set(one, [row]);
    else known.push(row);
  });
  return { rows, byMinute };
}

function compareMinute(
  open: OpenMinute,
  places: readonly Place[],
  hashes: readonly (PlaceHashes | undefined)[],
  found: Map<SourceRef, Map<number, number[]>>,
): void {
  /** The low 53 bits of a hash, and the others. */
  const seen = new Map<number, number>();
  for (const place of open.places) {
    const own = hashes[place];
    const { sources, instance } = places[place] as Place;
    const at = own?.byMinute.get(open) ?? [];
    if (own === undefined) continue;
    const { source, block, row, hashes: all } = own.rows;
    const keys = at.map((i) => all[2 * i]! + 2 ** 32 * (all[2 * i + 1]! & 0x1fffff));
    const rests = at.map((i) => all[2 * i + 1]! >>> 21);
    at.forEach((i, n) => {
      if (instance === undefined || seen.get(keys[n]!) !== rests[n]) return;
      addRow(found, sources[source[i]!]!.ref, block[i]!, row[i]!);
    });
    // Rows that the place itself has twice are none of another place.
    keys.forEach((key, n) => {
      if (!seen.has(key)) seen.set(key, rests[n]!);
    });
  }
}

function addRow(
  found: Map<SourceRef, Map<number, number[]>>,
  ref: SourceRef,
  block: number,
  row: number,
): void {
  const blocks = found.get(ref) ?? new Map<number, number[]>();
  found.set(ref, blocks);
  const rows = blocks.get(block);
  if (rows === undefined) blocks.set(block, [row]);
  else rows.push(row);
}

function maskOf(rows: ReadonlyMap<number, number[]>): RowMask {
  const blocks = Uint32Array.from(rows.keys()).sort();
  return { blocks, rows: Array.from(blocks, (block) => Uint32Array.from(rows.get(block)!).sort()) };
}

/** As many minutes at a time as there is room for their rows. */
function* batches(open: readonly OpenMinute[]): Generator<readonly OpenMinute[]> {
  let some: OpenMinute[] = [];
  let rows = 0;
  for (const one of open) {
    if (some.length > 0 && rows + one.rows > maxRowsAtOnce) {
      yield some;
      some = [];
      rows = 0;
    }
    some.push(one);
    rows += one.rows;
  }
  if (some.length > 0) yield some;
}

/** Collects minutes to leave out: of single streams, and of all where no stream counts. */
export class SkipList {
  readonly #whole = new Set<number>();
  readonly #byStream = new Map<number, number[]>();

  add(stream: number, added: readonly number[]): void {
    const minutes = this.#byStream.get(stream);
    if (minutes === undefined) this.#byStream.set(stream, [...added]);
    else minutes.push(...added);
  }

  addAll(other: SkipList | undefined): void {
    if (other === undefined) return;
    for (const minute of other.#whole) this.#whole.add(minute);
    for (const [stream, minutes] of other.#byStream) this.add(stream, minutes);
  }

  /**
   * Says in one word what is left out of all streams that there are; `minutesOf` a digest are those that it covers. Gives
   * whether that is all that is held.
   */
  coverWhole(held: MinuteDigests, minutesOf: (first: number) => readonly number[]): boolean {
    const left = new Map<number, number>();
    for (const stretches of numberMinutes(held).values()) {
      for (const first of stretches.keys()) {
        for (const minute of minutesOf(first)) left.set(minute, (left.get(minute) ?? 0) + 1);
      }
    }
    for (const minutes of this.#byStream.values()) {
      for (const minute of minutes) left.set(minute, (left.get(minute) ?? 0) - 1);
    }
    let isAll = true;
    for (const [minute, count] of left) {
      if (count === 0) this.#whole.add(minute);
      else isAll = false;
    }
    for (const [stream, minutes] of this.#byStream) {
      const others = minutes.filter((minute) => !this.#whole.has(minute));
      if (others.length > 0) this.#byStream.set(stream, others);
      else this.#byStream.delete(stream);
    }
    return isAll;
  }

  finish(): SkippedMinutes {
    const all: number[] = [];
    for (const minute of [...this.#whole].sort((a, b) => a - b)) {
      if (all.at(-1) === minute) all[all.length - 1] = minute + 1;
      else all.push(minute, minute + 1);
    }
    return { all: Uint32Array.from(all), some: streamMinutes(this.#byStream) };
  }
}
