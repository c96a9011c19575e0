import type { RowMask } from "@skald/contracts";
import { emptyMask } from "../source/row-mask.js";

/** Rows by block, in any order. */
export class FoundRows {
  readonly #byBlock = new Map<number, number[]>();

  add(block: number, row: number): void {
    const rows = this.#byBlock.get(block);
    if (rows === undefined) this.#byBlock.set(block, [row]);
    else rows.push(row);
  }

  mask(): RowMask {
    if (this.#byBlock.size === 0) return emptyMask;
    const blocks = Uint32Array.from(this.#byBlock.keys()).sort();
    const rows = [...blocks].map((block) =>
      Uint32Array.from(this.#byBlock.get(block) as number[]).sort(),
    );
    return { blocks, rows };
  }
}
