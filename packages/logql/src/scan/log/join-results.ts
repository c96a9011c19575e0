import { paddingBytes } from "@skald/model";
import type { LogResult } from "../../plan/result.js";

/** One result of several that follow each other in the direction of the query, with its first `limit` rows. */
export function joinLogResults(results: readonly LogResult[], limit: number): LogResult {
  const rowCount = Math.min(
    limit,
    results.reduce((n, result) => n + result.rowCount, 0),
  );
  const timestamps = new BigInt64Array(rowCount);
  const labelSet = new Uint32Array(rowCount);
  const offsets = new Uint32Array(rowCount + 1);
  const pieces: Uint8Array[] = [];
  const labels: LogResult["labels"][number][] = [];
  let row = 0;
  for (const result of results) {
    const taken = Math.min(result.rowCount, rowCount - row);
    if (taken === 0) continue;
    const { lines } = result;
    timestamps.set(result.timestamps.subarray(0, taken), row);
    const shift = (offsets[row] as number) - (lines.offsets[0] as number);
    for (let i = 0; i < taken; i++) {
      labelSet[row + i] = labels.length + (result.labelSet[i] as number);
      offsets[row + i + 1] = shift + (lines.offsets[i + 1] as number);
    }
    pieces.push(lines.bytes.subarray(lines.offsets[0], lines.offsets[taken]));
    for (const set of result.labels) labels.push(set);
    row += taken;
  }
  const bytes = new Uint8Array((offsets[rowCount] as number) + paddingBytes);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  const warnings = [...new Set(results.flatMap((result) => result.warnings))];
  return {
    kind: "streams",
    rowCount,
    timestamps,
    labelSet,
    lines: { bytes, offsets },
    labels,
    warnings,
  };
}
