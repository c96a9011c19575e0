import { crc32 } from "node:zlib";
import { errorCodeOf, internal, refuseNewerVersion } from "@skald/model";
import { type IndexImage, writeImage } from "../segment/index-image.js";
import { SectionReader, section } from "../segment/index-sections.js";
import { decodeStreams } from "../segment/read/stream-table.js";
import { zstd, zstdContentBytes } from "../zstd/zstd.js";
import { daySection } from "./sections.js";
import { countParts, decodeCounts } from "./stream-counts.js";

/** Parts of an image; those of the streams follow. */
export const dayPart = {
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

/** Where each of some lists that follow each other begins, and where the last one ends. */
export function runningSum(counts: ArrayLike<number>): Uint32Array {
  const sums = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) sums[i + 1] = sums[i]! + counts[i]!;
  return sums;
}
