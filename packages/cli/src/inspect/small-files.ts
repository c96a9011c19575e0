import { decodeRequestFile } from "@skald/compactor/requests";
import { decodePatterns } from "@skald/patterns/file";
import { DayIndex, decodeDayIndex } from "@skald/storage";
import { type Document, timeText } from "./document.js";

/** The segments of a tenant's day. Throws `internal` when the file is damaged. */
export function inspectDay(name: string, bytes: Uint8Array): Document {
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

/** The patterns that were found of each stream. Throws when the file is damaged. */
export function inspectPatterns(name: string, bytes: Buffer): Document {
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

/** A delete request, or its progress. Throws when the file is damaged. */
export function inspectRequest(name: string, bytes: Uint8Array): Document {
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
