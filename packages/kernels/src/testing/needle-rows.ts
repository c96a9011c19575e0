import fc from "fast-check";

/** Rows one behind the other, some bytes before the first. */
export function columnOf(rows: readonly Uint8Array[]): { bytes: Uint8Array; offsets: Uint32Array } {
  const offsets = Uint32Array.from([3, ...rows.map(({ length }) => length)]);
  for (let i = 0; i < rows.length; i++) offsets[i + 1]! += offsets[i]!;
  return { bytes: Buffer.concat([Buffer.from("xyz"), ...rows, Buffer.from("behind")]), offsets };
}

/** Rows that a needle filter may trip over. */
export const needleRow = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  fc
    .array(fc.constantFrom("err", "Order", "7", "12", "K", "ſ", "\u212a", "é", " ", "\n"), {
      maxLength: 16,
    })
    .map((parts) => Uint8Array.from(Buffer.from(parts.join("")))),
  // rows that repeat each other, and zeros, which tables begin with
  fc
    .array(fc.constantFrom("\0\0\0\0\0\0\0\0", "\0", "GET /orders/17", "status=200 "), {
      maxLength: 8,
    })
    .map((parts) => Uint8Array.from(Buffer.from(parts.join("")))),
);
