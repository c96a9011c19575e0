/** What stands at a field of a row. */
export const fieldKind = {
  /** The row does not have the field. */
  absent: 0,
  /** A value as it is: a text without its quotes, a number, a boolean. */
  plain: 1,
  /** A text, without its quotes, with escapes or bytes beyond ASCII, which are still to be judged. */
  coded: 2,
} as const;

/** Most names of one scan: each has a bit in `enough`. */
export const maxFields = 32;

/**
 * Fields of rows in columns. Field f of the i-th selected row is at `f * capacity + i`: where its raw text begins in
 * the bytes of the block, how long it is, and its kind. Start and length count only where the kind is not absent.
 */
export interface FieldColumns {
  readonly fieldCount: number;
  readonly capacity: number;
  readonly start: Uint32Array;
  readonly length: Uint32Array;
  readonly kind: Uint8Array;
  /** By selected row: 1, or 0 when the kernel does not judge it; then the caller must parse it, all fields are absent. */
  readonly isRead: Uint8Array;
}

/** Empty columns for up to `capacity` rows, to be used again from block to block. */
export function fieldColumns(fieldCount: number, capacity: number): FieldColumns {
  const size = fieldCount * capacity;
  return {
    fieldCount,
    capacity,
    start: new Uint32Array(size),
    length: new Uint32Array(size),
    kind: new Uint8Array(size),
    isRead: new Uint8Array(capacity),
  };
}

/** What a pattern captures: texts with a capture behind each, the last one perhaps without. */
export interface CapturePattern {
  /** The text before the first capture, which may be empty, then the text that ends each capture; empty where it takes the rest. */
  readonly texts: readonly string[];
  /** By capture: the column that gets its value, or -1. Captures behind the last one with a column may be left out. */
  readonly columns: Int32Array;
  /** Columns in all. */
  readonly columnCount: number;
}

/** The fields that are enough to leave a line, one bit each (1 << index); 0: every line is read to its end. */
export interface EnoughFields {
  readonly enough: number;
}

export interface JsonFieldOptions extends EnoughFields {
  /**
   * True: every object of a line is read, so that with `enough` 0 no malformed line counts as read. False: objects
   * in which no field can be are passed over.
   */
  readonly complete: boolean;
}

export interface LogfmtFieldOptions extends EnoughFields {
  /** A row with a broken pair is not read; else such pairs are passed over. */
  readonly strict: boolean;
  /** Keys with an empty value or none count. */
  readonly keepEmpty: boolean;
  /** Of equal keys the last counts, else the first. */
  readonly lastWins: boolean;
}

/** Deepest nesting of objects that is walked; a row that goes deeper is not read. */
export const maxFieldDepth = 64;

/** Refuses more names than there are bits. */
export function checkFieldNames(names: readonly string[]): void {
  if (names.length > maxFields) {
    throw new RangeError(
      `${names.length} fields asked for; a scan takes no more than ${maxFields}`,
    );
  }
}
