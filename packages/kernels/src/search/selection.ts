/**
 * The rows of a block that are still in play: the first `count` values of `rows`, ascending. Pipeline stages narrow
 * it in place; `rows` never grows.
 */
export interface RowSelection {
  rows: Uint32Array;
  count: number;
}

/** A selection of all rows of a block. */
export function selectAll(rowCount: number): RowSelection {
  const rows = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row++) rows[row] = row;
  return { rows, count: rowCount };
}

/** How a text is searched in the rows of a block. */
export interface ContainsOptions {
  /** A to Z equal a to z; other letters are not folded. */
  readonly ignoreCase: boolean;
  /** Keeps the rows that do not contain the text. */
  readonly negate: boolean;
}
