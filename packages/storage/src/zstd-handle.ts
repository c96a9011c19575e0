import zlib from "node:zlib";
import { paddingBytes } from "@skald/model";

/** Decompresses frames into memory of the caller. */
interface ZstdDecoder {
  /**
   * Writes the content of a frame to `into`, which must have padding behind it, and returns its length; undefined when
   * the frame is damaged. A content longer than `into` gives a length above that of `into`.
   */
  decode(stored: Uint8Array, into: Uint8Array): number | undefined;
}

/**
 * A decoder that keeps its context from frame to frame; undefined where this Node has none.
 *
 * The functions of node:zlib make a context and an output buffer for every call, which costs a third of the time of a
 * block and most of the garbage of a scan. The handle behind a zlib stream writes to a given place. It is not a documented
 * interface, so it is tried out first, and is not used when it does not behave as expected: see
 * docs/decisions/004-zstd-handle.md. Figures: bench/zstd.mjs.
 */
export function openZstdDecoder(): ZstdDecoder | undefined {
  if (typeof zlib.createZstdDecompress !== "function") return undefined;
  try {
    const decoder = handleDecoder(zlib.createZstdDecompress());
    return decoder !== undefined && isSoundDecoder(decoder) ? decoder : undefined;
  } catch {
    return undefined;
  }
}

function handleDecoder(stream: object): ZstdDecoder | undefined {
  const opened = zlibHandle(stream);
  if (opened === undefined) return undefined;
  const { handle, state, write } = opened;
  const decodeOnce = (stored: Uint8Array, into: Uint8Array): number | undefined => {
    // The room behind a frame of the right length makes a longer one show.
    const room = into.byteLength + paddingBytes;
    const output = new Uint8Array(into.buffer, into.byteOffset, room);
    const isSound = write(stored, output);
    return isSound && state[1] === 0 ? room - state[0]! : undefined;
  };
  let isNew = true;
  return {
    decode(stored, into) {
      if (stored.byteLength === 0) return undefined;
      // A frame that ended leaves the context as new. A frame that only seemed to end makes the next one fail, because the
      // first bytes of that one are neither a block nor a checksum: it is decoded once more.
      const wasNew = isNew;
      let length = decodeOnce(stored, into);
      if (length !== into.byteLength && !wasNew) {
        handle.reset();
        length = decodeOnce(stored, into);
      }
      isNew = length !== into.byteLength;
      if (isNew) handle.reset();
      return length;
    },
  };
}

/** Decodes frames as a scan does, one after the other, whole, cut and too long. */
function isSoundDecoder(decoder: ZstdDecoder): boolean {
  const text = Buffer.from(Array.from({ length: 300 }, (_, i) => `row ${i * 7919}`).join("\n"));
  const frame = zlib.zstdCompressSync(text);
  const memory = new Uint8Array(text.byteLength + paddingBytes);
  for (const length of [text.byteLength, text.byteLength - 1, text.byteLength]) {
    const into = memory.subarray(0, length);
    memory.fill(0);
    if (decoder.decode(frame, into) !== text.byteLength) return false;
    if (Buffer.compare(text.subarray(0, length), into) !== 0) return false;
    if (decoder.decode(frame.subarray(0, frame.byteLength - 9), into) !== undefined) return false;
  }
  return true;
}

/** Compresses bytes to frames of one level. */
export interface ZstdEncoder {
  /** One frame, which states its content size; undefined when that failed. */
  encode(raw: Uint8Array): Uint8Array | undefined;
}

/**
 * An encoder that keeps its context from frame to frame; undefined where this Node has none. The frames are those of
 * `zstdCompressSync`, which makes a context and an output buffer for every call: for a page of a few KB that is most
 * of the time. See openZstdDecoder for the handle, and docs/decisions/004-zstd-handle.md.
 */
export function openZstdEncoder(level: number): ZstdEncoder | undefined {
  if (typeof zlib.createZstdCompress !== "function") return undefined;
  try {
    const encoder = handleEncoder(zlib.createZstdCompress({ params: paramsOf(level) }));
    return encoder !== undefined && isSoundEncoder(encoder, level) ? encoder : undefined;
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
 * Size of the hash table at the levels of sealing and of merging. The tables of zstd are made for longer inputs: clearing
 * them and missing the cache took a sixth of the time of level 1 and a third of level 9.
 */
const hashLogs: ReadonlyMap<number, number> = new Map([
  [1, 12],
  [9, 15],
]);

function handleEncoder(stream: object): ZstdEncoder | undefined {
  const opened = zlibHandle(stream);
  if (opened === undefined) return undefined;
  const { handle, state, write } = opened;
  let failed = false;
  let kept = Buffer.alloc(0);
  return {
    encode(raw) {
      // With room for the worst case a frame is made in one step, which also makes its header state the size.
      const room = maxFrameBytes(raw.byteLength);
      const output = kept.byteLength < room ? Buffer.allocUnsafeSlow(room) : kept;
      if (room <= maxKeptBytes) kept = output;
      // A frame that ended leaves the context as new; only a frame that did not must be forgotten.
      if (failed) handle.reset();
      failed = !write(raw, output) || state[0] === 0 || state[1] !== 0;
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
function isSoundEncoder(encoder: ZstdEncoder, level: number): boolean {
  const text = Buffer.from(Array.from({ length: 300 }, (_, i) => `row ${i * 7919}`).join("\n"));
  return [text, text.subarray(0, 600), text.subarray(0, 0), text].every((raw) => {
    const want = zlib.zstdCompressSync(raw, { params: paramsOf(level) });
    const frame = encoder.encode(raw);
    return frame !== undefined && Buffer.compare(want, frame) === 0;
  });
}

/** The part of a zlib stream's handle that is used. */
interface ZlibHandle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputAt: number,
    inputBytes: number,
    output: Uint8Array,
    outputAt: number,
    outputBytes: number,
  ): void;
  reset(): void;
  onerror: (...error: unknown[]) => void;
}

interface OpenHandle {
  readonly handle: ZlibHandle;
  /** After a write: bytes left of the output, then of the input. */
  readonly state: Uint32Array;
  /** Writes a whole input as one frame; false when that failed. */
  readonly write: (input: Uint8Array, output: Uint8Array) => boolean;
}

/** The handle of a stream of node:zlib; undefined where it does not look as expected. */
function zlibHandle(stream: object): OpenHandle | undefined {
  const { _handle: handle, _writeState: state } = stream as {
    readonly _handle?: ZlibHandle;
    readonly _writeState?: Uint32Array;
  };
  if (typeof handle?.writeSync !== "function" || typeof handle.reset !== "function") return;
  if (!ArrayBuffer.isView(state) || state.length < 2) return;
  const end = zlib.constants.ZSTD_e_end;
  let failed = false;
  handle.onerror = () => {
    failed = true;
  };
  const write = (input: Uint8Array, output: Uint8Array): boolean => {
    failed = false;
    handle.writeSync(end, input, 0, input.byteLength, output, 0, output.byteLength);
    return !failed;
  };
  return { handle, state, write };
}
