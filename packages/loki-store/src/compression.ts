import zlib from "node:zlib";
import { decodeSnappy } from "@skald/kernels";
import { decodeLz4 } from "@skald/push/lz4";
import { damaged, unsupported } from "./bytes.js";

/** Undoes the encoding of a block; more than `maxBytes` throw. */
type Decode = (bytes: Uint8Array, maxBytes: number) => Uint8Array;

/** By the number that a chunk has. Those of lz4 differ only in the size of their blocks. */
const decoders: Readonly<Record<number, Decode>> = {
  0: (bytes) => bytes,
  1: (bytes, maxOutputLength) => zlib.gunzipSync(bytes, { maxOutputLength }),
  3: decodeLz4,
  4: decodeSnappyFrames,
  5: decodeLz4,
  6: decodeLz4,
  7: decodeLz4,
  8: (bytes, maxOutputLength) => zlib.inflateRawSync(bytes, { maxOutputLength }),
  9: decodeZstd,
};

/** The decoder of an encoding. Throws for one that no chunk of schema v13 has. */
export function decoderOf(encoding: number, name: string): Decode {
  const decode = decoders[encoding];
  if (decode === undefined) throw unsupported(name, `chunk encoding ${encoding} is not known`);
  return (bytes, maxBytes) => {
    try {
      return decode(bytes, maxBytes);
    } catch (error) {
      throw damaged(name, (error as Error).message);
    }
  };
}

function decodeZstd(bytes: Uint8Array, maxOutputLength: number): Uint8Array {
  // Node 20 lacks it, and a named import would keep the program from starting there.
  if (zlib.zstdDecompressSync === undefined) throw new Error("its zstd needs Node 22.15 or newer");
  return zlib.zstdDecompressSync(bytes, { maxOutputLength });
}

/** Concatenated frames: kinds of chunks below, checksums are not looked at, because those of the Loki chunk cover them. */
const frame = { compressed: 0, plain: 1, firstSkippable: 0x80 } as const;
const frameChecksumBytes = 4;

/** Snappy's framing format (framing_format.txt of the snappy project). */
function decodeSnappyFrames(bytes: Uint8Array, maxBytes: number): Uint8Array {
  const parts: Uint8Array[] = [];
  let total = 0;
  for (let at = 0; at < bytes.length; ) {
    const kind = bytes[at]!;
    const length = bytes[at + 1]! + (bytes[at + 2]! << 8) + (bytes[at + 3]! << 16);
    const body = bytes.subarray(at + 4, at + 4 + length);
    if (Number.isNaN(length) || body.length < length)
      throw new Error("a snappy frame ends too early");
    at += 4 + length;
    if (kind >= frame.firstSkippable) continue;
    const data = body.subarray(frameChecksumBytes);
    if (kind === frame.compressed) parts.push(decodeSnappy(data, maxBytes - total));
    else if (kind === frame.plain) parts.push(data);
    else throw new Error(`a snappy frame has the unknown kind ${kind}`);
    total += parts.at(-1)!.length;
    if (total > maxBytes) throw new Error(`it inflates to more than ${maxBytes} bytes`);
  }
  return Buffer.concat(parts);
}
