import * as zlib from "node:zlib";

/**
 * CRC-32 (the polynomial of gzip) of the bytes, unsigned; `previous` continues an earlier one. Node's own where it
 * exists (22.2, 20.15), because it is about ten times as fast as the table.
 */
export function crc32(bytes: Uint8Array, previous = 0): number {
  return nodeCrc32 === undefined ? crc32ByTable(bytes, previous) : nodeCrc32(bytes, previous);
}

/** The same from a table of 256 values. */
export function crc32ByTable(bytes: Uint8Array, previous = 0): number {
  let crc = ~previous;
  for (let i = 0; i < bytes.length; i++) crc = table[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

const nodeCrc32 = (zlib as { crc32?: (bytes: Uint8Array, previous: number) => number }).crc32;

const table = Int32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});
