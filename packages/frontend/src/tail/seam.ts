import type { LogResult } from "@skald/logql";
import { formatLabels } from "@skald/model";

/**
 * Keeps rows from coming twice where the history of a tail ends and its new rows begin: rows that came in while the history
 * was read may be in both. A row is known by its labels, its time and its line, as they are sent.
 */
export class Seam {
  readonly #keys = new Set<string>();
  readonly #endNs: bigint;

  /** `endNs`: the history has no row from this time on. */
  constructor(history: LogResult, endNs: bigint) {
    this.#endNs = endNs;
    const keyOf = keysOf(history);
    for (let row = 0; row < history.rowCount; row++) this.#keys.add(keyOf(row));
  }

  /** Numbers of the rows that the history did not have. */
  newRows(rows: LogResult): number[] {
    const keyOf = keysOf(rows);
    const found: number[] = [];
    for (let row = 0; row < rows.rowCount; row++) {
      const mayBeKnown = this.#keys.size > 0 && (rows.timestamps[row] as bigint) < this.#endNs;
      if (!mayBeKnown || !this.#keys.delete(keyOf(row))) found.push(row);
    }
    return found;
  }
}

function keysOf({ labels, labelSet, timestamps, lines }: LogResult): (row: number) => string {
  const texts: string[] = [];
  const { bytes, offsets } = lines;
  return (row) => {
    const set = labelSet[row] as number;
    texts[set] ??= formatLabels((labels[set] as LogResult["labels"][number]).labels);
    const line = bytes.subarray(offsets[row], offsets[row + 1]);
    return `${timestamps[row]}${texts[set]}${Buffer.from(line).toString("latin1")}`;
  };
}
