import { readFileSync } from "node:fs";
import { decodeRequestFile } from "@skald/compactor/requests";
import { errorCodeOf } from "@skald/model";
import { decodePatterns, isPatternFile } from "@skald/patterns/file";
import {
  DayIndex,
  decodeDayIndex,
  describeSegment,
  inspectWal,
  openFileRange,
  type SegmentDescription,
  type SyncRangeReader,
  type WalFault,
  type WalRecord,
} from "@skald/storage";
import { type Document, timeText } from "./document.js";

/**
 * Describes the contents of a file. Errors name the file: it is damaged, it is not a file of Skald, or (`newer_version`) a newer
 * version of the program wrote it.
 */
export function inspectFile(path: string, options: SegmentOptions): Document {
  const reader = openFileRange(path);
  try {
    const head = Buffer.from(reader.read(0, Math.min(headBytes, reader.sizeBytes)));
    const kind = kindOfContent(head) ?? kindOfName(path);
    if (kind === undefined) throw new Error(`${path} is no file of Skald`);
    return kind === "segment" ? inspectSegment(reader, options) : inspectWhole(path, kind);
  } finally {
    reader.close();
  }
}

function inspectWhole(path: string, kind: Exclude<FileKind, "segment">): Document {
  const bytes = readFileSync(path);
  switch (kind) {
    case "log":
      return inspectLog(path, bytes);
    case "day index":
      return inspectDay(path, bytes);
    case "patterns":
      return naming(path, () => inspectPatterns(path, bytes));
    case "delete request":
      return naming(path, () => inspectRequest(path, bytes));
  }
}

function naming<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

export type FileKind = "segment" | "log" | "day index" | "patterns" | "delete request";

/** The first bytes of a file, which show its kind. */
const headBytes = 64;

/** The kind by the first bytes of a file; undefined if the file is not Skald's. */
function kindOfContent(head: Buffer): FileKind | undefined {
  const text = head.toString("latin1");
  if (text.startsWith("PAR1")) return "segment";
  if (text.startsWith("SKALDWAL")) return "log";
  if (text.startsWith("SKALDDAY")) return "day index";
  if (isPatternFile(head)) return "patterns";
  return /^\s*\{\s*"version"\s*:\s*\d+\s*,\s*"crc32"/.test(text) ? "delete request" : undefined;
}

/** The kind by the name of a file: `verify` must not miss a file because its head is damaged. */
export function kindOfName(name: string): FileKind | undefined {
  if (name.endsWith(".parquet")) return "segment";
  if (/(^|\/)\d{8,15}\.wal$/.test(name)) return "log";
  if (name.endsWith(".day")) return "day index";
  if (name.endsWith("patterns/patterns.bin")) return "patterns";
  return /(^|\/)delete_requests\/.*\.json$/.test(name) ? "delete request" : undefined;
}

export interface SegmentOptions {
  readonly streams: boolean;
  readonly blocks: boolean;
}

/** Describes a segment without reading its pages. Throws `internal` if its index or footer is damaged. */
function inspectSegment(reader: SyncRangeReader, options: SegmentOptions): Document {
  const found = describeSegment(reader);
  const { filters, digests, levels, rowSets, fields } = found;
  const setBytes = found.sections.find(({ name }) => name === "setRows")?.bytes ?? 0;
  const texts = Object.keys(rowSets);
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
      rowSets: texts.length === 0 ? "none" : `${texts.length} texts, ${setBytes} bytes`,
      fields:
        fields.columns === 0
          ? "none"
          : `${fields.columns} columns in ${fields.blocks} blocks, ${fields.irregularRows} rows left to parsers`,
      levels: levels.countedRuns === 0 ? "not counted" : `${levels.countedRuns} runs counted`,
    },
    tables: {
      parts: found.parts.map((part) => ({ ...part })),
      columns: found.columns.map((column) => ({ ...column })),
      index: found.sections.map((section) => ({ ...section })),
      rowsByText: texts.map((text) => ({ text, rows: rowSets[text] })),
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

interface Counts {
  records: number;
  bytes: number;
  rows: number;
}

/** Counts the records of a file of the write-ahead log, and lists its damage. */
function inspectLog(name: string, bytes: Buffer): Document {
  const kinds = new Map<string, Counts>();
  const tenants = new Map<string, Counts>();
  const faults: WalFault[] = [];
  const walk = inspectWal(name, bytes, {
    onRecord: (record, _offset, recordBytes) => {
      count(kinds, record === "void" ? record : record.kind, record, recordBytes);
      if (record !== "void") count(tenants, record.tenant, record, recordBytes);
    },
    onFault: (fault) => void faults.push(fault),
  });
  for (let step = walk.next(); !step.done; ) step = walk.next();
  const total = [...kinds.values()];
  return {
    kind: "write-ahead log",
    facts: {
      sizeBytes: bytes.length,
      records: total.reduce((sum, { records }) => sum + records, 0),
      rows: total.reduce((sum, { rows }) => sum + rows, 0),
      tenants: tenants.size,
      damaged: faults.filter(({ kind }) => kind !== "torn").length,
    },
    tables: {
      recordsByKind: Array.from(kinds, ([kind, counts]) => ({ kind, ...counts })),
      recordsByTenant: Array.from(tenants, ([tenant, counts]) => ({ tenant, ...counts })),
      damage: faults.map((fault) => ({ ...fault })),
    },
  };
}

function count(
  counts: Map<string, Counts>,
  key: string,
  record: WalRecord | "void",
  bytes: number,
): void {
  const before = counts.get(key) ?? { records: 0, bytes: 0, rows: 0 };
  counts.set(key, {
    records: before.records + 1,
    bytes: before.bytes + bytes,
    rows: before.rows + rowsOf(record),
  });
}

function rowsOf(record: WalRecord | "void"): number {
  if (record === "void" || record.kind === "streams") return 0;
  if (record.kind === "push_body") return record.levels.length;
  return record.ranges.reduce((sum, { rowFrom, rowTo }) => sum + rowTo - rowFrom, 0);
}

/** Lists the segments of a tenant's day. Throws `internal` if the file is damaged. */
function inspectDay(name: string, bytes: Uint8Array): Document {
  const day = new DayIndex(decodeDayIndex(name, bytes));
  const msText = (ms: number) => new Date(ms).toISOString();
  return {
    kind: "day index",
    facts: {
      tenant: day.tenant,
      day: timeText(day.baseNs).slice(0, 10),
      generation: day.generation,
      written: msText(day.writtenMs),
      sizeBytes: bytes.length,
      streams: day.streams.count,
      segments: day.segments.length,
      rows: day.segments.reduce((sum, { rows }) => sum + rows, 0),
      replaced: day.gone.filter(({ by }) => by !== undefined).length,
      gone: day.gone.filter(({ by }) => by === undefined).length,
    },
    tables: {
      segmentList: day.segments.map(({ id, level, rows, lineBytes, sizeBytes, ...times }) => ({
        ...{ id, level, rows, lineBytes, sizeBytes },
        from: timeText(times.minNs),
        to: timeText(times.maxNs),
      })),
      goneList: day.gone.map(({ id, sinceMs, by }) => ({ id, since: msText(sinceMs), by })),
    },
  };
}

/** Counts the patterns of each stream. Throws if the file is damaged. */
function inspectPatterns(name: string, bytes: Buffer): Document {
  const miners = decodePatterns(name, bytes);
  const lines = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);
  return {
    kind: "patterns",
    facts: {
      sizeBytes: bytes.length,
      tenants: new Set(miners.map(({ tenant }) => tenant)).size,
      streams: new Set(miners.map(({ tenant, stream }) => `${tenant} ${stream}`)).size,
      patterns: miners.reduce((sum, { clusters }) => sum + clusters.length, 0),
    },
    tables: {
      patternsByStream: miners.map(({ tenant, stream, level, clusters }) => ({
        ...{ tenant, stream, level, patterns: clusters.length },
        lines: clusters.reduce((sum, { counts }) => sum + lines(counts), 0),
      })),
    },
  };
}

/** Shows a delete request, or its progress. Throws if the file is damaged. */
function inspectRequest(name: string, bytes: Uint8Array): Document {
  const body = decodeRequestFile(name, bytes) as Readonly<Record<string, unknown>>;
  const facts = Object.entries(body).map(([name, value]) => [
    name,
    name.endsWith("Ms") && typeof value === "number"
      ? new Date(value).toISOString()
      : typeof value === "string" || typeof value === "number"
        ? value
        : JSON.stringify(value),
  ]);
  const kind = "done" in body ? "progress of a delete request" : "delete request";
  return { kind, facts: Object.fromEntries(facts), tables: {} };
}
