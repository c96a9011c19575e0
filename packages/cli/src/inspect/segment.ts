import { describeSegment, type SegmentDescription, type SyncRangeReader } from "@skald/storage";
import { type Document, timeText } from "./document.js";

export interface SegmentOptions {
  readonly streams: boolean;
  readonly blocks: boolean;
}

/** What is in a segment; no page is read. Throws `internal` when its index or footer is damaged. */
export function inspectSegment(reader: SyncRangeReader, options: SegmentOptions): Document {
  const found = describeSegment(reader);
  const { filters, digests, levels } = found;
  return {
    kind: "segment",
    facts: {
      tenant: found.tenant,
      id: found.id,
      day: timeText(found.baseNs).slice(0, 10),
      from: timeText(found.minNs),
      to: timeText(found.maxNs),
      rows: found.rows,
      rawBytes: found.lineBytes,
      storedBytes: found.sizeBytes,
      ratio: Number((found.sizeBytes / Math.max(found.lineBytes, 1)).toFixed(3)),
      rowGroups: found.rowGroups,
      blocks: found.blocks,
      streams: found.streams,
      filters:
        filters === undefined
          ? "none"
          : `${filters.groups} groups, ${filters.lines} bytes of lines, ${filters.metadata} of metadata`,
      digests:
        digests.streams === 0 ? "none" : `${digests.streams} streams, ${digests.minutes} minutes`,
      levels: levels.countedRuns === 0 ? "not counted" : `${levels.countedRuns} runs counted`,
    },
    tables: {
      parts: found.parts.map((part) => ({ ...part })),
      columns: found.columns.map((column) => ({ ...column })),
      index: found.sections.map((section) => ({ ...section })),
      rowsByLevel: Object.entries(levels.rows).map(([level, rows]) => ({ level, rows })),
      ...(options.streams ? { streamList: streamsOf(found) } : {}),
      ...(options.blocks ? { blockList: blocksOf(found) } : {}),
    },
  };
}

function streamsOf({ segment }: SegmentDescription): Document["tables"][string] {
  return Array.from({ length: segment.streamCount }, (_, stream) => {
    let rows = 0;
    let lineBytes = 0;
    let blocks = 0;
    let minTime = Number.POSITIVE_INFINITY;
    let maxTime = Number.NEGATIVE_INFINITY;
    segment.forEachRun(stream, (block, run) => {
      const runs = segment.runs(block);
      rows += runs.rowStart[run + 1]! - runs.rowStart[run]!;
      lineBytes += runs.lineBytes[run]!;
      minTime = Math.min(minTime, runs.minTime[run]!);
      maxTime = Math.max(maxTime, runs.maxTime[run]!);
      blocks++;
    });
    const at = (time: number) => timeText(segment.baseNs + BigInt(time));
    const times = rows === 0 ? {} : { from: at(minTime), to: at(maxTime) };
    return { rows, lineBytes, blocks, ...times, labels: segment.text(stream) };
  });
}

function blocksOf({ segment }: SegmentDescription): Document["tables"][string] {
  return Array.from({ length: segment.blockCount }, (_, block) => {
    const header = segment.header(block);
    const { rowCount: rows, lineBytes, storedBytes, rawBytes, runs } = header;
    return {
      ...{ block, rows, streams: runs.count, lineBytes, storedBytes, rawBytes },
      from: timeText(segment.baseNs + BigInt(header.minTime)),
      to: timeText(segment.baseNs + BigInt(header.maxTime)),
      first: segment.text(runs.stream[0]!),
    };
  });
}
