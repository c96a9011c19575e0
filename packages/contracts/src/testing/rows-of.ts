import type { Batch } from "@skald/model";

/** What a batch holds, row by row. */
export function rowsOf(batch: Batch) {
  const cut = (start: number, length: number) =>
    Buffer.from(batch.bytes.subarray(start, start + length)).toString();
  return batch.streams.flatMap(({ text: own, ordinal, rowStart, rowEnd }) =>
    Array.from({ length: rowEnd - rowStart }, (_, i) => {
      const row = rowStart + i;
      const pairs = [];
      for (let pair = batch.metaStart[row]!; pair < batch.metaStart[row + 1]!; pair++) {
        const value = cut(batch.metaValueStart[pair]!, batch.metaValueLength[pair]!);
        pairs.push([batch.metaNames[batch.metaName[pair]!], value]);
      }
      return {
        text: own,
        ordinal,
        pairs,
        time: [batch.seconds[row], batch.nanos[row]],
        line: cut(batch.lineStart[row]!, batch.lineLength[row]!),
        level: batch.levels[row],
      };
    }),
  );
}
