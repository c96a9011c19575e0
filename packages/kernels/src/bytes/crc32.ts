import * as zlib from "node:zlib";
import { crc32ByTable } from "./crc32-table.js";

/**
 * CRC-32 (the polynomial of gzip) of the bytes, unsigned; `previous` continues an earlier one. Node's own where it
 * exists (22.2, 20.15), which does 7 GB/s where the table does 0.5.
 */
export function crc32(bytes: Uint8Array, previous = 0): number {
  return nodeCrc32 === undefined ? crc32ByTable(bytes, previous) : nodeCrc32(bytes, previous);
}

const nodeCrc32 = (zlib as { crc32?: (bytes: Uint8Array, previous: number) => number }).crc32;
