import {
  DayIndex,
  decodeDayIndex,
  type FoundSegment,
  type LabelTable,
  parseDayIndexKey,
} from "@skald/storage";

/** The newest index of a day, against which its segments are held. */
export class DayCheck {
  readonly #day: DayIndex;
  /** It lies where a store has it, with its segments beside it. */
  readonly #isNamed: boolean;
  readonly #places: ReadonlyMap<string, number>;
  readonly #seen = new Set<string>();
  /** Streams by the hash of their labels. */
  readonly #streams: ReadonlyMap<number, number>;

  /** Throws `internal` for an index that is damaged, or is not that of its key. */
  constructor(key: string, bytes: Uint8Array) {
    this.#day = new DayIndex(decodeDayIndex(key, bytes));
    const named = parseDayIndexKey(key);
    const { tenant, baseNs, generation } = this.#day;
    this.#isNamed = named !== undefined;
    const isSame =
      named === undefined ||
      (named.tenant === tenant && named.baseNs === baseNs && named.generation === generation);
    if (!isSame) throw new Error(`it is generation ${generation} of another day or tenant`);
    const { streams, segments } = this.#day;
    this.#places = new Map(segments.map(({ id }, place) => [id, place]));
    this.#streams = new Map(
      Array.from({ length: streams.count }, (_, stream) => [hashOf(streams, stream), stream]),
    );
  }

  /** What is wrong between the index and a segment of the day; undefined when nothing is. */
  compare(segment: FoundSegment): string | undefined {
    const { id, minNs, maxNs, rows, lineBytes, sizeBytes, streams } = segment;
    this.#seen.add(id);
    const place = this.#places.get(id);
    // What the index does not know is younger, and what is gone waits for its deletion.
    if (place === undefined) return undefined;
    const indexed = this.#day.segments[place]!;
    const isSame =
      indexed.minNs === minNs &&
      indexed.maxNs === maxNs &&
      indexed.rows === rows &&
      indexed.lineBytes === lineBytes &&
      indexed.sizeBytes === sizeBytes;
    if (!isSame) return "the day index has other rows, times or sizes of it";
    for (let stream = 0; stream < streams.count; stream++) {
      const known = this.#streams.get(hashOf(streams, stream));
      if (known === undefined || !this.#day.segmentsOf(known).includes(place))
        return `the day index does not say that it holds ${streams.text(stream)}`;
    }
    return undefined;
  }

  /** A segment that is there but cannot be read: its damage is told elsewhere. */
  see(id: string): void {
    this.#seen.add(id);
  }

  /** Ids of the segments that the index names and that were not seen. */
  missing(): string[] {
    if (!this.#isNamed) return [];
    return this.#day.segments.map(({ id }) => id).filter((id) => !this.#seen.has(id));
  }
}

/** Both words of a hash as far as a float64 is exact. */
function hashOf({ hashes }: LabelTable, stream: number): number {
  return hashes[2 * stream]! * 2 ** 20 + (hashes[2 * stream + 1]! >>> 12);
}
