import zlib from "node:zlib";
import { zlibHandle } from "./handle.js";

/** Compresses bytes to frames of one level. */
export interface ZstdEncoder {
  /** One frame, which states its content size; undefined when that failed. */
  encode(raw: Uint8Array): Uint8Array | undefined;
}

/**
 * An encoder that keeps its context from frame to frame; undefined where this Node has none. The frames are those of
 * `zstdCompressSync`, which makes a context and an output buffer for every call: for a page of a few KB that is most
 * of the time. See openZstdDecoder for what it is made of, and docs/decisions/004-zstd-handle.md.
 */
export function openZstdEncoder(level: number): ZstdEncoder | undefined {
  if (typeof zlib.createZstdCompress !== "function") return undefined;
  try {
    const encoder = handleEncoder(zlib.createZstdCompress({ params: paramsOf(level) }));
    return encoder !== undefined && isSound(encoder, level) ? encoder : undefined;
  } catch {
    return undefined;
  }
}

/** The parameters of node:zlib for a level. */
export function paramsOf(level: number): Record<number, number> {
  const { ZSTD_c_compressionLevel, ZSTD_c_hashLog, ZSTD_c_minMatch } = zlib.constants;
  const params = { [ZSTD_c_compressionLevel]: level };
  const hashLog = hashLogs.get(level);
  if (hashLog === undefined) return params;
  return { ...params, [ZSTD_c_hashLog]: hashLog, [ZSTD_c_minMatch]: 6 };
}

/**
 * Size of the table of places at the levels of sealing and of merging. Those of zstd are made for longer inputs: clearing and missing
 * the cache took a sixth of the time of level 1 and a third of level 9.
 */
const hashLogs: ReadonlyMap<number, number> = new Map([
  [1, 12],
  [9, 15],
]);

function handleEncoder(stream: object): ZstdEncoder | undefined {
  const opened = zlibHandle(stream);
  if (opened === undefined) return undefined;
  const { handle, state } = opened;
  let failed = false;
  handle.onerror = () => {
    failed = true;
  };
  const end = zlib.constants.ZSTD_e_end;
  let kept = Buffer.alloc(0);
  return {
    encode(raw) {
      // With room for the worst case a frame is made in one step, which also makes its header state the size.
      const room = maxFrameBytes(raw.byteLength);
      const output = kept.byteLength < room ? Buffer.allocUnsafeSlow(room) : kept;
      if (room <= maxKeptBytes) kept = output;
      // A frame that ended leaves the context as new; only one that did not has to be forgotten.
      if (failed) handle.reset();
      failed = false;
      handle.writeSync(end, raw, 0, raw.byteLength, output, 0, output.byteLength);
      failed ||= state[0] === 0 || state[1] !== 0;
      if (failed) return undefined;
      return new Uint8Array(output.subarray(0, output.byteLength - state[0]!));
    },
  };
}

/** A larger output, of which there are few, is not kept. */
const maxKeptBytes = 2 * 1024 * 1024;

/** More than `ZSTD_compressBound` gives. */
function maxFrameBytes(rawBytes: number): number {
  return rawBytes + (rawBytes >>> 7) + 1024;
}

/** Encodes as a writer does, one after the other, large and small, and with nothing in it. */
function isSound(encoder: ZstdEncoder, level: number): boolean {
  const text = Buffer.from(Array.from({ length: 300 }, (_, i) => `row ${i * 7919}`).join("\n"));
  return [text, text.subarray(0, 600), text.subarray(0, 0), text].every((raw) => {
    const want = zlib.zstdCompressSync(raw, { params: paramsOf(level) });
    const frame = encoder.encode(raw);
    return frame !== undefined && Buffer.compare(want, frame) === 0;
  });
}
