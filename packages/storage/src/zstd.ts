import zlib from "node:zlib";
import { internal, paddingBytes } from "@skald/model";
import type { PageMemory } from "./bytes.js";
import { openZstdDecoder, openZstdEncoder, paramsOf, type ZstdEncoder } from "./zstd-handle.js";

/**
 * Zstandard frames. Node's own is used where it exists (22.15 and later); elsewhere a WebAssembly build, which is
 * ready before this module is (its start is awaited at import).
 */
export interface Zstd {
  readonly name: "builtin" | "wasm";
  /** One frame that states its content size, in memory of its own. The level is 1 to 22. */
  compress(raw: Uint8Array, level: number): Uint8Array;
  /**
   * Content of a frame, in `memory` when it is given. Throws `internal` when it is not exactly `rawBytes` long. Padding
   * follows the last byte.
   */
  decompress(stored: Uint8Array, rawBytes: number, memory?: PageMemory): Uint8Array;
}

/** Below this a frame costs more time (25-30 us) than its bytes are worth. */
export const minCompressBytes = 512;

export const zstd: Zstd =
  typeof zlib.zstdCompressSync === "function" ? builtinZstd() : await loadWasmZstd();

/** Level of a fresh segment: 2 to 5 are slower and, on these pages, larger. */
export const sealLevel = 1;

function builtinZstd(): Zstd {
  const decoder = openZstdDecoder();
  const encoders = new Map<number, ZstdEncoder | undefined>();
  return {
    name: "builtin",
    compress(raw, level) {
      if (!encoders.has(level)) encoders.set(level, openZstdEncoder(level));
      return encoders.get(level)?.encode(raw) ?? compressAlone(raw, level);
    },
    decompress(stored, rawBytes, memory) {
      checkContentSize(stored, rawBytes);
      if (decoder === undefined) return decompressAlone(stored, rawBytes);
      const into = memory?.take(rawBytes) ?? withRoom(rawBytes);
      // What a private handle cannot read is damage only once the public function has said so too.
      if (decoder.decode(stored, into) !== rawBytes) into.set(decompressAlone(stored, rawBytes));
      return into;
    },
  };
}

function decompressAlone(stored: Uint8Array, rawBytes: number): Uint8Array {
  const room = rawBytes + paddingBytes;
  const options = { chunkSize: room, maxOutputLength: room };
  return contentOf(() => zlib.zstdDecompressSync(stored, options), rawBytes);
}

/** Compresses with a context of its own. */
function compressAlone(raw: Uint8Array, level: number): Uint8Array {
  // A chunk that holds most results: the default of 16 KiB costs a third of the speed, and memory for the worst case is
  // slow to allocate.
  return zlib.zstdCompressSync(raw, {
    chunkSize: (raw.byteLength >>> 1) + 1024,
    params: paramsOf(level),
  });
}

/** The WebAssembly build, for a Node without its own. */
export async function loadWasmZstd(): Promise<Zstd> {
  const { default: wasm } = await import("@bokuweb/zstd-wasm");
  await wasm.init();
  return {
    name: "wasm",
    compress: (raw, level) => wasm.compress(raw, level),
    decompress(stored, rawBytes) {
      // The library allocates what the frame states, so that is checked first.
      checkContentSize(stored, rawBytes);
      if (rawBytes === 0) return new Uint8Array(paddingBytes).subarray(0, 0);
      return contentOf(() => wasm.decompress(stored), rawBytes);
    },
  };
}

/** Content size stated by the header of a zstd frame; undefined when it states none or is not a frame. */
export function zstdContentBytes(stored: Uint8Array): number | undefined {
  if (stored.byteLength < 6) return undefined;
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
  if (view.getUint32(0, true) !== zstdMagic) return undefined;
  const descriptor = view.getUint8(4);
  const singleSegment = (descriptor & 0x20) !== 0;
  const sizeCode = descriptor >>> 6;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const at = 5 + (singleSegment ? 0 : 1) + dictionaryBytes;
  const sizeBytes = sizeCode === 0 ? (singleSegment ? 1 : 0) : 1 << sizeCode;
  if (sizeBytes === 0 || at + sizeBytes > stored.byteLength) return undefined;
  if (sizeBytes === 1) return view.getUint8(at);
  if (sizeBytes === 2) return view.getUint16(at, true) + 256;
  if (sizeBytes === 4) return view.getUint32(at, true);
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
}

const zstdMagic = 0xfd2fb528;

function checkContentSize(stored: Uint8Array, rawBytes: number): void {
  const stated = zstdContentBytes(stored);
  if (stated === rawBytes) return;
  throw internal(`zstd frame states ${stated ?? "no"} bytes of content, ${rawBytes} expected`);
}

/** What `decompress` returns, which must be `rawBytes` long, with padding behind it. */
function contentOf(decompress: () => Uint8Array, rawBytes: number): Uint8Array {
  let raw: Uint8Array;
  try {
    raw = decompress();
  } catch (error) {
    throw internal("zstd frame cannot be read", { cause: error });
  }
  if (raw.byteLength !== rawBytes)
    throw internal(`zstd frame holds ${raw.byteLength} bytes, ${rawBytes} expected`);
  // Node's result has the padding already when it came in one chunk.
  if (raw.buffer.byteLength - raw.byteOffset - rawBytes >= paddingBytes) return raw;
  const out = withRoom(rawBytes);
  out.set(raw);
  return out;
}

function withRoom(bytes: number): Uint8Array {
  return new Uint8Array(bytes + paddingBytes).subarray(0, bytes);
}
