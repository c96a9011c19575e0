/** What stands at a field of a row. */
export const fieldKind = {
  /** The row does not have the field. */
  absent: 0,
  /** A text as it is, without its quotes. */
  text: 1,
  /** A text, without its quotes, whose escapes are still to be undone. */
  escaped: 2,
  number: 3,
  boolean: 4,
} as const;

/** How the scan of a row ended. */
export const fieldStatus = {
  ok: 0,
  /** JSON, in the order of the reference's messages: malformed JSON, string, array, object, unknown value. */
  malformed: 1,
  openString: 2,
  openArray: 3,
  openObject: 4,
  unknownValue: 5,
  /** Logfmt with `strict`: a broken pair. */
  brokenPair: 6,
  /** The kernel does not judge such a row: the caller must parse it, its fields are all absent. */
  unsure: 255,
} as const;

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
  /** By selected row. */
  readonly status: Uint8Array;
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
    status: new Uint8Array(capacity),
  };
}

export interface JsonFieldOptions {
  /**
   * True: each line is read to its end and into every object, so that the status tells every malformed line. False:
   * a line is left when all fields are found, and objects in which none can be are passed over.
   */
  readonly complete: boolean;
}

export interface LogfmtFieldOptions {
  /** A row ends at its first broken pair, and its status says so; else broken pairs are passed over. */
  readonly strict: boolean;
  /** Keys with an empty value or none count. */
  readonly keepEmpty: boolean;
  /** Of equal keys the last counts, else the first. */
  readonly lastWins: boolean;
}

/** Deepest nesting of objects that is walked; a row that goes deeper is unsure. */
export const maxFieldDepth = 64;
