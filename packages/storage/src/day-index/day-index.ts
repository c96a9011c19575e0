import { crc32 } from "node:zlib";
import {
  dayNs,
  errorCodeOf,
  internal,
  type Matcher,
  refuseNewerVersion,
  type TimeRange,
} from "@skald/model";
import { LRUCache } from "lru-cache";
import { runningSum } from "../bytes.js";
import { ImageReader, type IndexImage, writeImage } from "../segment/index-image.js";
import { SectionReader, section } from "../segment/index-sections.js";
import type { LabelTable } from "../segment/segment.js";
import { decodeStreams, StreamTable } from "../segment/streams.js";
import { zstd, zstdContentBytes } from "../zstd.js";
import { countParts, daySection, decodeCounts, StreamCounts } from "./stream-counts.js";

/** What a day index says of a segment. */
export interface IndexedSegment {
  readonly id: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly sizeBytes: number;
  readonly rows: number;
  /** Bytes of the lines. */
  readonly lineBytes: number;
  /** Merges that its rows went through. */
  readonly level: number;
}

/** A segment that counts no more. */
export interface GoneSegment extends Pick<IndexedSegment, "id" | "minNs" | "maxNs"> {
  /** Since when, ms since the epoch. */
  readonly sinceMs: number;
  /** The segment that has its rows; undefined when none has. */
  readonly by: string | undefined;
}

/** Answers that an opened index remembers. */
const maxRemembered = 32;

/** The segments of a tenant's day as of one generation of its index, and their streams. */
export class DayIndex {
  readonly image: IndexImage;
  readonly tenant: string;
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
  readonly generation: number;
  /** ms since the epoch */
  readonly writtenMs: number;
  /** In the order of their first times. */
  readonly segments: readonly IndexedSegment[];
  readonly gone: readonly GoneSegment[];
  readonly streams: LabelTable;
  /** What it counts of the streams of each segment. */
  readonly counts: StreamCounts;
  readonly #places: ReadonlyMap<string, number>;
  readonly #goneById: ReadonlyMap<string, GoneSegment>;
  readonly #minTimes: Float64Array;
  readonly #maxTimes: Float64Array;
  readonly #firstSegments: Uint32Array;
  readonly #streamSegments: Uint32Array;
  readonly #found = new LRUCache<string, Uint8Array>({ max: maxRemembered });

  constructor(image: IndexImage) {
    const reader = new ImageReader(image);
    const sections = new SectionReader(reader.bytes(dayPart.sections));
    const [day, generation, writtenMs, streamCount] = sections.numbers(daySection.summary);
    this.image = image;
    this.tenant = sections.texts(daySection.tenant)[0] ?? "";
    this.baseNs = BigInt(day!) * dayNs;
    this.generation = generation!;
    this.writtenMs = writtenMs!;
    this.#minTimes = reader.numbers(dayPart.minTimes);
    this.#maxTimes = reader.numbers(dayPart.maxTimes);
    this.#firstSegments = reader.words(dayPart.firstSegments);
    this.#streamSegments = reader.words(dayPart.segments);
    this.segments = this.#readSegments(sections);
    this.gone = this.#readGone(sections);
    this.#places = new Map(this.segments.map(({ id }, place) => [id, place]));
    this.#goneById = new Map(this.gone.map((gone) => [gone.id, gone]));
    this.counts = new StreamCounts(reader, dayPart.counts, sections);
    this.streams = new StreamTable(reader, dayPart.streams, sections, streamCount!);
  }

  /** Whether the index says anything of a segment: one that it does not know is younger. */
  knows(id: string): boolean {
    return this.#places.has(id) || this.#goneById.has(id);
  }

  find(id: string): IndexedSegment | undefined {
    const place = this.#places.get(id);
    return place === undefined ? undefined : this.segments[place];
  }

  goneOf(id: string): GoneSegment | undefined {
    return this.#goneById.get(id);
  }

  /** Places in `segments` of those that may hold rows of the range, and of a stream that satisfies every matcher. */
  select({ fromNs, toNs }: TimeRange, matchers: readonly Matcher[] = []): number[] {
    const from = Number(fromNs - this.baseNs);
    const to = Number(toNs - this.baseNs);
    const wanted = matchers.length === 0 ? undefined : this.#holding(matchers);
    const places: number[] = [];
    for (let place = 0; place < this.segments.length; place++) {
      if (this.#minTimes[place]! >= to || this.#maxTimes[place]! < from) continue;
      if (wanted === undefined || wanted[place] === 1) places.push(place);
    }
    return places;
  }

  /** Places of the segments that hold a stream, ascending. */
  segmentsOf(stream: number): Uint32Array {
    return this.#streamSegments.subarray(
      this.#firstSegments[stream],
      this.#firstSegments[stream + 1],
    );
  }

  /** A flag for each segment: 1 where it holds a stream that satisfies every matcher. */
  #holding(matchers: readonly Matcher[]): Uint8Array {
    const key = JSON.stringify(matchers);
    const known = this.#found.get(key);
    if (known !== undefined) return known;
    const flags = new Uint8Array(this.segments.length);
    let left = flags.length;
    for (const stream of this.streams.match(matchers)) {
      if (left === 0) break;
      for (const place of this.segmentsOf(stream)) {
        if (flags[place] === 0) left--;
        flags[place] = 1;
      }
    }
    this.#found.set(key, flags);
    return flags;
  }

  #readSegments(sections: SectionReader): IndexedSegment[] {
    const sizes = sections.numbers(daySection.sizeBytes);
    const rows = sections.numbers(daySection.rows);
    const lineBytes = sections.numbers(daySection.lineBytes);
    const levels = sections.numbers(daySection.levels);
    return sections.texts(daySection.ids).map((id, place) => ({
      id,
      minNs: this.baseNs + BigInt(this.#minTimes[place]!),
      maxNs: this.baseNs + BigInt(this.#maxTimes[place]!),
      sizeBytes: sizes[place]!,
      rows: rows[place]!,
      lineBytes: lineBytes[place]!,
      level: levels[place]!,
    }));
  }

  #readGone(sections: SectionReader): GoneSegment[] {
    const minTimes = sections.numbers(daySection.goneMinTimes);
    const spans = sections.numbers(daySection.goneSpans);
    const sinceMs = sections.numbers(daySection.goneSinceMs);
    const by = sections.numbers(daySection.goneBy);
    return sections.texts(daySection.goneIds).map((id, i) => {
      const minNs = this.baseNs + BigInt(minTimes[i]!);
      const holder = this.segments[by[i]! - 1];
      if (by[i]! > 0 && holder === undefined) throw internal(`day index has no segment ${by[i]}`);
      return {
        ...{ id, minNs, maxNs: minNs + BigInt(spans[i]!), sinceMs: sinceMs[i]! },
        by: holder?.id,
      };
    });
  }
}

/** Parts of an image; those of the streams follow. */
const dayPart = {
  sections: 0,
  minTimes: 1,
  maxTimes: 2,
  firstSegments: 3,
  segments: 4,
  counts: 5,
  streams: 5 + countParts,
} as const;

export const dayMagic = "SKALDDAY";
export const dayVersion = 1;
export const dayHeaderBytes = 24;
const maxRawBytes = 1024 * 1024 * 1024;

/**
 * Checks and decodes the bytes of a day index, to be opened on any thread. Throws `internal`, naming it, when they are not
 * what was written, and `newer_version` when a later program wrote them.
 */
export function decodeDayIndex(name: string, bytes: Uint8Array): IndexImage {
  try {
    return decode(name, bytes);
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    throw internal(`day index ${name} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function decode(name: string, bytes: Uint8Array): IndexImage {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (head.length < dayHeaderBytes || head.toString("latin1", 0, 8) !== dayMagic)
    throw internal("it is none");
  const version = head.readUInt32LE(8);
  refuseNewerVersion(`day index ${name}`, { found: version, known: dayVersion });
  if (version !== dayVersion) throw internal(`its version is ${version}, not ${dayVersion}`);
  const rawBytes = head.readUInt32LE(12);
  const frame = bytes.subarray(dayHeaderBytes);
  if (crc32(frame) !== head.readUInt32LE(16)) throw internal("it does not match its checksum");
  if (rawBytes > maxRawBytes || zstdContentBytes(frame) !== rawBytes)
    throw internal("it has no valid size");
  const sections = new SectionReader(zstd.decompress(frame, rawBytes));
  const [, , , streamCount] = sections.numbers(daySection.summary);
  const minTimes = sections.numbers(daySection.minTimes);
  const spans = sections.numbers(daySection.spans);
  const first = runningSum(sections.numbers(daySection.streamCounts));
  const segments = Uint32Array.from(sections.numbers(daySection.streamSegments));
  if (
    spans.length !== minTimes.length ||
    first.length !== streamCount! + 1 ||
    first.at(-1) !== segments.length ||
    segments.some((place) => place >= minTimes.length)
  ) {
    throw internal("its parts do not fit together");
  }
  const maxTimes = minTimes.map((time, i) => time + spans[i]!);
  return writeImage([
    sections.without([
      ...[section.labelValues, section.labelStreams, section.labelCodes],
      ...[daySection.streamCounts, daySection.streamSegments],
      ...[daySection.countedStreams, daySection.streamRows, daySection.streamLineBytes],
      ...[daySection.timeUnit, daySection.streamBegins, daySection.streamEnds],
    ]),
    minTimes,
    maxTimes,
    first,
    segments,
    ...decodeCounts(sections, { first, segments, minTimes, maxTimes }),
    ...decodeStreams(sections, streamCount!),
  ]);
}
