import { deserialize, serialize } from "node:v8";
import zlib, { constants, crc32 } from "node:zlib";

/** Grows when what is kept changes its form: older values count as absent then. */
const version = 1;
const headerBytes = 6;
const maxDecodedBytes = 64 * 1024 * 1024;

/**
 * Plain data as a value of a store: a version, whether it is compressed, a checksum, and the data. Undefined when it takes
 * more than the store may be given.
 */
export function wrap(
  data: unknown,
  { compress, maxBytes }: { readonly compress: boolean; readonly maxBytes: number },
): Uint8Array<ArrayBuffer> | undefined {
  const plain = serialize(data);
  if (plain.byteLength > maxDecodedBytes) return undefined;
  const level = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
  // Node before 22.15 has no zstd: what is kept is larger there.
  const compressed = compress ? zlib.zstdCompressSync?.(plain, level) : undefined;
  const body = compressed ?? plain;
  if (body.byteLength + headerBytes > maxBytes) return undefined;
  const value = new Uint8Array(headerBytes + body.byteLength);
  value[0] = version;
  value[1] = compressed === undefined ? 0 : 1;
  new DataView(value.buffer).setUint32(2, crc32(body));
  value.set(body, headerBytes);
  return value;
}

/** The data again; undefined when the value is of another version, or damaged. */
export function unwrap(value: Uint8Array | undefined): unknown {
  if (value === undefined || value.byteLength < headerBytes || value[0] !== version)
    return undefined;
  const body = value.subarray(headerBytes);
  const header = new DataView(value.buffer, value.byteOffset);
  if (header.getUint32(2) !== crc32(body)) return undefined;
  try {
    const options = { maxOutputLength: maxDecodedBytes };
    return deserialize(value[1] === 1 ? zlib.zstdDecompressSync(body, options) : body);
  } catch {
    return undefined;
  }
}
