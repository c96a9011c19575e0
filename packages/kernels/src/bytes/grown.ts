type Column = Uint8Array | Int32Array | Uint32Array | Float64Array;

/** A copy of a column with room for `length` values; the new ones are 0. `length` is not below the old one. */
export function grown<T extends Column>(column: T, length: number): T {
  const longer = new (column.constructor as new (length: number) => T)(length);
  longer.set(column);
  return longer;
}
