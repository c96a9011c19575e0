import type { LogResult, RowLabels } from "@skald/logql";
import { formatLabels, formatRfc3339, type QueryStats } from "@skald/model";
import { text } from "./json.js";
import { encodeStats } from "./stats.js";

/** The body of the legacy query endpoint: streams with label texts, entries with RFC 3339 times. */
export function encodeLegacyStreams(result: LogResult, stats: QueryStats): string {
  const streams = new Map<string, { ts: string; line: string }[]>();
  const keys = result.labels.map((row: RowLabels) => formatLabels(row.labels));
  const decoder = new TextDecoder();
  const { bytes, offsets } = result.lines;
  for (let row = 0; row < result.rowCount; row++) {
    const key = keys[result.labelSet[row] as number] as string;
    const entries = streams.get(key) ?? [];
    streams.set(key, entries);
    entries.push({
      ts: formatRfc3339(result.timestamps[row] as bigint),
      line: decoder.decode(bytes.subarray(offsets[row], offsets[row + 1])),
    });
  }
  const list = [...streams.keys()]
    .sort()
    .map((labels) => ({ labels, entries: streams.get(labels) }));
  return `{"streams":${text(list)},"stats":${encodeStats(stats)}}\n`;
}
