import { crc32 } from "node:zlib";
import { dayNs, errorCodeOf, parseStreamText, type SegmentRef } from "@skald/model";
import { ByteWriter, runningSum } from "../bytes.js";
import { compareFirst } from "../object-store/keys.js";
import type { IndexImage } from "../segment/index-image.js";
import { SectionWriter } from "../segment/index-sections.js";
import { labelColumns, writeStreams } from "../segment/layout.js";
import { SegmentIndex } from "../segment/read/index-reader.js";
import { openSegmentFile } from "../segment/read/reader.js";
import { zstd } from "../zstd.js";
import { countSegment, type SegmentCounts, writeCounts } from "./count-segments.js";
import {
  DayIndex,
  dayHeaderBytes,
  dayMagic,
  dayVersion,
  decodeDayIndex,
  type GoneSegment,
  type IndexedSegment,
} from "./day-index.js";
import { daySection } from "./stream-counts.js";

/** A segment that comes to a day: a file of this machine, or one whose index was read. */
export interface AddedSegment {
  readonly ref: SegmentRef;
  readonly image?: IndexImage;
  readonly level: number;
}

/** What is to become of a day; plain data, for another thread. */
export interface DayChange {
  readonly tenant: string;
  readonly baseNs: bigint;
  /** The index before, if there is one. */
  readonly base: IndexImage | undefined;
  readonly add: readonly AddedSegment[];
  readonly remove: readonly GoneSegment[];
  readonly forget: readonly string[];
  readonly generation: number;
  /** ms since the epoch */
  readonly writtenMs: number;
}

export interface EditedDay {
  readonly bytes: Uint8Array;
  readonly image: IndexImage;
  /** Of those to add: what cannot be read, and why. They are not in the index. */
  readonly damaged: readonly { readonly id: string; readonly reason: string }[];
}

/** Makes the next index of a day. Blocks the thread: reads the footer of each file, and may be slow for many streams. */
export function editDay(change: DayChange): EditedDay {
  const { base, add, remove, forget } = change;
  const edit = new DayEdit(base === undefined ? change : new DayIndex(base));
  const damaged: { id: string; reason: string }[] = [];
  for (const added of add) {
    try {
      addSegment(edit, added);
    } catch (error) {
      if (errorCodeOf(error) !== "internal") throw error;
      damaged.push({ id: added.ref.id, reason: (error as Error).message });
    }
  }
  for (const gone of remove) edit.remove(gone);
  for (const id of forget) edit.forget(id);
  const bytes = edit.encode(change);
  return { bytes, image: decodeDayIndex("that was just made", bytes), damaged };
}

function addSegment(edit: DayEdit, { ref, image, level }: AddedSegment): void {
  const { id, minNs, maxNs, sizeBytes } = ref;
  const index = new SegmentIndex(image ?? imageOf(ref));
  const texts = Array.from({ length: index.streams.count }, (_, s) => index.streams.text(s));
  const { rowCount: rows, lineBytes } = index;
  const segment = { id, minNs, maxNs, sizeBytes, rows, lineBytes, level };
  edit.add(segment, texts, countSegment(index));
}

function imageOf(ref: SegmentRef): IndexImage {
  const { segment, close } = openSegmentFile(ref);
  close();
  return segment.image;
}

/** Level of zstd: postings and labels are written rarely, and read often. */
const level = 3;

/** The next state of a day: what an index had, with changes. */
export class DayEdit {
  readonly #day: Pick<DayIndex, "tenant" | "baseNs">;
  readonly #segments = new Map<string, IndexedSegment>();
  readonly #gone = new Map<string, GoneSegment>();
  /** By id of the segment. */
  readonly #counts = new Map<string, SegmentCounts>();
  /** Ids of the segments that hold a stream, by its text; those that are no more in the day included. */
  readonly #holders = new Map<string, string[]>();

  /** Begins with what the index has, or with an empty day. */
  constructor(day: DayIndex | Pick<DayIndex, "tenant" | "baseNs">) {
    this.#day = day;
    if (!("streams" in day)) return;
    day.segments.forEach((segment, place) => {
      this.#segments.set(segment.id, segment);
      const counts = countsAt(day, place);
      if (counts !== undefined) this.#counts.set(segment.id, counts);
    });
    for (const gone of day.gone) this.#gone.set(gone.id, gone);
    for (let stream = 0; stream < day.streams.count; stream++) {
      const ids = Array.from(day.segmentsOf(stream), (place) => day.segments[place]!.id);
      this.#holders.set(day.streams.text(stream), ids);
    }
  }

  /** Adds a segment with its streams, by their canonical texts. Where they are counted, the texts ascend. */
  add(segment: IndexedSegment, streamTexts: Iterable<string>, counts?: SegmentCounts): void {
    if (this.#segments.has(segment.id)) return;
    if (counts !== undefined) this.#counts.set(segment.id, counts);
    this.#segments.set(segment.id, segment);
    this.#gone.delete(segment.id);
    for (const text of streamTexts) {
      const ids = this.#holders.get(text);
      if (ids === undefined) this.#holders.set(text, [segment.id]);
      else ids.push(segment.id);
    }
  }

  /** Makes a segment one that is gone; its rows, and those of the segments that it had replaced, are in `by`, if anywhere. */
  remove(segment: GoneSegment): void {
    this.#segments.delete(segment.id);
    this.#gone.set(segment.id, segment);
    for (const [id, gone] of this.#gone) {
      if (gone.by === segment.id) this.#gone.set(id, { ...gone, by: segment.by });
    }
  }

  /** Says no more that a segment is gone. */
  forget(id: string): void {
    this.#gone.delete(id);
  }

  /** The bytes of the index of a generation; see docs/formats/day-index.md. */
  encode({ generation, writtenMs }: Pick<DayIndex, "generation" | "writtenMs">): Uint8Array {
    const segments = [...this.#segments.values()].sort(compareFirst);
    const places = new Map(segments.map(({ id }, place) => [id, place]));
    const streams = this.#streams(places);
    const sections = new SectionWriter();
    const { tenant, baseNs } = this.#day;
    sections.texts(daySection.tenant, [tenant]);
    const day = Number(baseNs / dayNs);
    sections.numbers(daySection.summary, [day, generation, writtenMs, streams.texts.length]);
    this.#writeSegments(sections, segments, streams);
    this.#writeGone(sections, places);
    writeStreams(sections, labelColumns(streams.texts.map(parseStreamText)));
    sections.numbers(daySection.streamCounts, streams.counts);
    sections.numbers(daySection.streamSegments, streams.segments);
    return framed(sections.finish());
  }

  #streams(places: ReadonlyMap<string, number>) {
    const texts: string[] = [];
    const counts: number[] = [];
    const segments: number[] = [];
    for (const text of [...this.#holders.keys()].sort()) {
      const held: number[] = [];
      for (const id of this.#holders.get(text)!) {
        const place = places.get(id);
        if (place !== undefined) held.push(place);
      }
      if (held.length === 0) continue;
      texts.push(text);
      counts.push(held.length);
      for (const place of held.sort((a, b) => a - b)) segments.push(place);
    }
    return { texts, counts, segments };
  }

  #writeSegments(
    sections: SectionWriter,
    segments: readonly IndexedSegment[],
    holders: { readonly counts: readonly number[]; readonly segments: readonly number[] },
  ): void {
    const numbers = (id: number, of: (segment: IndexedSegment) => number) =>
      sections.numbers(id, segments.map(of));
    const ids = segments.map(({ id }) => id);
    sections.texts(daySection.ids, ids);
    numbers(daySection.minTimes, ({ minNs }) => Number(minNs - this.#day.baseNs));
    numbers(daySection.spans, ({ minNs, maxNs }) => Number(maxNs - minNs));
    numbers(daySection.sizeBytes, ({ sizeBytes }) => sizeBytes);
    numbers(daySection.rows, ({ rows }) => rows);
    numbers(daySection.lineBytes, ({ lineBytes }) => lineBytes);
    numbers(daySection.levels, (segment) => segment.level);
    writeCounts(
      sections,
      segments.map(({ id, minNs, maxNs }) => ({
        minTime: Number(minNs - this.#day.baseNs),
        maxTime: Number(maxNs - this.#day.baseNs),
        counts: this.#counts.get(id),
      })),
      { first: runningSum(holders.counts), segments: Uint32Array.from(holders.segments) },
    );
  }

  #writeGone(sections: SectionWriter, places: ReadonlyMap<string, number>): void {
    const gone = [...this.#gone.values()].sort(compareFirst);
    const numbers = (id: number, of: (segment: GoneSegment) => number) =>
      sections.numbers(id, gone.map(of));
    const ids = gone.map(({ id }) => id);
    sections.texts(daySection.goneIds, ids);
    numbers(daySection.goneMinTimes, ({ minNs }) => Number(minNs - this.#day.baseNs));
    numbers(daySection.goneSpans, ({ minNs, maxNs }) => Number(maxNs - minNs));
    numbers(daySection.goneSinceMs, ({ sinceMs }) => sinceMs);
    numbers(daySection.goneBy, ({ by }) => (by === undefined ? 0 : (places.get(by) ?? -1) + 1));
  }
}

function countsAt({ counts }: DayIndex, place: number): SegmentCounts | undefined {
  const runs = counts.of(place);
  if (runs === undefined) return undefined;
  const { count, rowStart, lineBytes, minTime: minTimes, maxTime: maxTimes } = runs;
  const rows = Float64Array.from({ length: count }, (_, i) => rowStart[i + 1]! - rowStart[i]!);
  const marks = counts.marks(place);
  const counted = {
    rows,
    lineBytes,
    minTimes,
    maxTimes,
    ...(marks === undefined ? {} : { marks }),
  };
  return { metadataNames: counts.metadataNames(place), ...counted };
}

function framed(raw: Uint8Array): Uint8Array {
  const frame = zstd.compress(raw, level);
  const out = new ByteWriter(dayHeaderBytes + frame.byteLength);
  out.append(Buffer.from(dayMagic, "latin1"));
  out.u32(dayVersion);
  out.u32(raw.byteLength);
  out.u32(crc32(frame));
  out.u32(0);
  out.append(frame);
  return out.view();
}
