import { groupLogRows, type LogResult } from "@skald/logql";
import { formatLabels, formatRfc3339, type QueryStats } from "@skald/model";
import { type Pieces, PieceWriter } from "./pieces.js";
import { encodeStats } from "./stats.js";

/** The body of the legacy query endpoint: streams with label texts, entries with RFC 3339 times. */
export function* encodeLegacyStreams(result: LogResult, stats: QueryStats): Pieces {
  const out = new PieceWriter();
  const { bytes, offsets } = result.lines;
  let comma = "";
  out.text('{"streams":[');
  for (const { labels, rows } of groupLogRows(result, "all")) {
    out.text(`${comma}{"labels":`);
    out.string(formatLabels(labels));
    out.text(',"entries":[');
    comma = "";
    for (const row of rows) {
      out.text(`${comma}{"ts":"${formatRfc3339(result.timestamps[row] as bigint)}","line":`);
      comma = ",";
      out.line(bytes, offsets[row] as number, offsets[row + 1] as number);
      out.text("}");
      yield* out.full();
    }
    out.text("]}");
    comma = ",";
  }
  out.text(`],"stats":${encodeStats(stats)}}\n`);
  yield* out.rest();
}
