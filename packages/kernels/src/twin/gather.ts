import { paddingBytes } from "../shared/bytes.js";
import type { Kernels } from "../shared/kernels.js";

/** Finds where the value of each row ends, then copies the values. */
export const gatherValues: Kernels["gatherValues"] = (bytes, offsets, picks, rows) => {
  const ends = new Uint32Array(rows + 1);
  for (let row = 0, end = 0; row < rows; row++) {
    const pick = picks[row]!;
    if (pick >= offsets.length) throw new RangeError("a value that is not there is picked");
    if (pick > 0) {
      const [from, to] = [offsets[pick - 1]!, offsets[pick]!];
      if (from > to || to > bytes.length) throw new RangeError("a value is out of range");
      end += to - from;
    }
    ends[row + 1] = end;
  }
  const gathered = new Uint8Array(ends[rows]! + paddingBytes);
  for (let row = 0; row < rows; row++) {
    const pick = picks[row]!;
    if (pick === 0) continue;
    gathered.set(bytes.subarray(offsets[pick - 1]!, offsets[pick]!), ends[row]!);
  }
  return { bytes: gathered, offsets: ends };
};
