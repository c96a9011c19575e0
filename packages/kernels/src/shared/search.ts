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

/**
 * Positions of the two bytes of a text that are likely to be the rarest in logs; equal for a text of one byte. A
 * search compares these first, so that it seldom compares more.
 */
export function rarestPair(text: Uint8Array): readonly [number, number] {
  let first = 0;
  for (let i = 1; i < text.length; i++) if (ranks[text[i]!]! < ranks[text[first]!]!) first = i;
  let second = first === 0 ? text.length - 1 : 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== text[first] && ranks[text[i]!]! < ranks[text[second]!]!) second = i;
  }
  return [first, second];
}

/** Bytes from common to rare, as counted in mixed logs; all others are rarer. */
const common = ' e"tao0ni1srl2cd:=.-/,53p467m98uhgfbv_yw+k{}xqzjTSAEIM[]()PRCDNLOZFGKBHUVWXYJQ\n';

const ranks = Uint8Array.from({ length: 256 }, (_, byte) => {
  const place = common.indexOf(String.fromCharCode(byte));
  return place < 0 ? 0 : 255 - place;
});
