import { readFileSync } from "node:fs";
import type { Batch, Labels } from "@skald/model";
import { HeadBlock, openHeadBlock, type SealedSegment, sealSegment } from "@skald/storage";
import { readChunk } from "./chunk.js";

/** Chunks of one tenant that become one segment, with rows in `[fromNs, toNs)` of one UTC day. */
export interface ImportJob {
  readonly tenant: string;
  /** Start of the day: ns since the epoch. */
  readonly baseNs: bigint;
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly id: string;
  /** Where the segment is written. */
  readonly path: string;
  readonly chunks: readonly {
    readonly name: string;
    readonly labels: Labels;
    /** Its bytes, or the path of the file that has them. */
    readonly object: Uint8Array | string;
  }[];
}

export interface ImportedChunks {
  /** Absent when no row is in the range. */
  readonly sealed?: SealedSegment;
  /** Rows of the chunks in the range; the segment has fewer where chunks have the same row. */
  readonly rows: number;
  /** What is wrong with chunks that were left out, by name. */
  readonly damaged: readonly { readonly name: string; readonly error: string }[];
}

/** Room of a head block; a batch with a longer line, or a row with more metadata, gets a block of its own size. */
const blockRoom = {
  rows: 16_384,
  runs: 1024,
  pairs: 32_768,
  lineBytes: 1 << 20,
  valueBytes: 1 << 18,
};

/** Writes the rows of chunks as a segment. Blocks its thread. A chunk that cannot be read is left out as a whole. */
export function importChunks(job: ImportJob): ImportedChunks {
  const { tenant, baseNs, id, path, chunks } = job;
  const blocks: HeadBlock[] = [];
  const streams = new Map<string, number>();
  const damaged: { name: string; error: string }[] = [];
  let rows = 0;
  for (const { name, labels, object } of chunks) {
    try {
      const bytes = typeof object === "string" ? readFileSync(object) : object;
      const batch = readChunk(bytes, labels, job, name);
      if (batch.rowCount === 0) continue;
      const text = batch.streams[0]!.text;
      const stream = streams.get(text) ?? streams.size;
      streams.set(text, stream);
      append(blocks, batch, stream, baseNs);
      rows += batch.rowCount;
    } catch (error) {
      damaged.push({ name, error: (error as Error).message });
    }
  }
  if (rows === 0) return { rows, damaged };
  const opened = blocks.map((block) => openHeadBlock(block.view()));
  const heads = [{ blocks: opened, streamTexts: [...streams.keys()] }];
  return { sealed: sealSegment({ tenant, id, path, heads, filters: "ribbon" }), rows, damaged };
}

function append(blocks: HeadBlock[], batch: Batch, stream: number, baseNs: bigint): void {
  for (let row = 0; row < batch.rowCount; ) {
    const taken = blocks.at(-1)?.append(batch, row, batch.rowCount, stream) ?? 0;
    row += taken;
    if (taken === 0) blocks.push(new HeadBlock(baseNs, roomFor(batch)));
    else blocks.at(-1)!.publish(blocks.at(-1)!.rowCount);
  }
}

/** Room for any single row of a batch at least. */
function roomFor({ rowCount, lineLength, metaStart, metaValueLength }: Batch): typeof blockRoom {
  const room = { ...blockRoom };
  for (let row = 0; row < rowCount; row++) {
    let valueBytes = 0;
    for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++)
      valueBytes += metaValueLength[pair]!;
    room.lineBytes = Math.max(room.lineBytes, lineLength[row]!);
    room.pairs = Math.max(room.pairs, metaStart[row + 1]! - metaStart[row]!);
    room.valueBytes = Math.max(room.valueBytes, valueBytes);
  }
  return room;
}
