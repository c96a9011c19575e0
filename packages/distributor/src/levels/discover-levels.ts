import { detectLevels, type RawPush } from "@skald/kernels";
import { levelInMetadata } from "@skald/model";
import type { MetadataNames } from "@skald/push";
import type { PushLimits } from "../settings/limits.js";
import type { PushStream } from "../validate/stream-rules.js";
import { MetadataLevels } from "./metadata-levels.js";
import { ForeignLevels } from "./unmapped-levels.js";

export interface DiscoverInput {
  readonly push: RawPush;
  readonly streams: readonly PushStream[];
  readonly names: MetadataNames;
  readonly limits: PushLimits;
}

export interface Discovered {
  /** Level code of each row of the push. */
  readonly levels: Uint8Array;
  /** Levels outside the table that labels or other metadata gave; they become metadata of their rows. */
  readonly foreign: ForeignLevels;
}

/** Rows whose lines are searched between two points where other work may go first. */
const rowsPerStep = 8192;
/** What a stream takes beside its rows. */
const rowsPerStream = 8;

/**
 * Finds the level of each row: its metadata `detected_level`, else what the labels of its stream say, else another
 * metadata that names a level, else its line. Only rows that nothing else decided are given to the kernel.
 */
export function* discoverLevels(input: DiscoverInput): Generator<void, Discovered> {
  const { push, limits } = input;
  const levels = new Uint8Array(push.rowCount);
  const foreign = new ForeignLevels(push);
  const metadata = new MetadataLevels(push, input.names, limits);
  const discovers = limits.discover_log_levels && limits.allow_structured_metadata;
  let left = rowsPerStep;
  for (let ordinal = 0; ordinal < push.streamCount; ordinal++) {
    const stream = input.streams[ordinal]!;
    const end = push.streamRowStart[ordinal + 1]!;
    left -= rowsPerStream;
    for (let from = push.streamRowStart[ordinal]!; from < end; ) {
      const to = Math.min(end, from + Math.max(1, left));
      if (metadata.decides) metadata.readRows(from, to, stream, levels, foreign);
      else if (stream.level !== 0) applyLabel(stream, from, to, levels, foreign);
      left -= to - from;
      from = to;
      if (left > 0) continue;
      yield;
      left = rowsPerStep;
    }
  }
  if (discovers) yield* searchLines(push, limits, levels);
  return { levels, foreign };
}

function applyLabel(
  stream: PushStream,
  from: number,
  to: number,
  levels: Uint8Array,
  foreign: ForeignLevels,
): void {
  levels.fill(stream.level, from, to);
  if (stream.level !== levelInMetadata) return;
  for (let row = from; row < to; row++) foreign.setText(row, stream.levelText);
}

/** Asks the kernel for the rows that have no level yet: all at once where that is all of them, else gathered. */
function* searchLines(
  push: RawPush,
  limits: PushLimits,
  levels: Uint8Array,
): Generator<void, undefined> {
  const options = {
    fields: limits.log_level_fields,
    jsonMaxDepth: limits.log_level_from_json_max_depth,
  };
  const { lineStart, lineLength, rows, found } = searched;
  for (let from = 0; from < push.rowCount; from += rowsPerStep) {
    const to = Math.min(push.rowCount, from + rowsPerStep);
    let count = 0;
    for (let row = from; row < to; row++) {
      if (levels[row] !== 0) continue;
      lineStart[count] = push.lineStart[row]!;
      lineLength[count] = push.lineLength[row]!;
      rows[count++] = row;
    }
    if (count > 0) detectLevels(push.bytes, lineStart, lineLength, count, found, options);
    for (let i = 0; i < count; i++) levels[rows[i]!] = found[i]!;
    if (to < push.rowCount) yield;
  }
}

/** The rows of one step: nothing of it is needed any more when others go first. */
const searched = {
  lineStart: new Uint32Array(rowsPerStep),
  lineLength: new Uint32Array(rowsPerStep),
  rows: new Uint32Array(rowsPerStep),
  found: new Uint8Array(rowsPerStep),
};
