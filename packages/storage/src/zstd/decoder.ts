import zlib from "node:zlib";
import { paddingBytes } from "@skald/model";
import { zlibHandle } from "./handle.js";

/** Decompresses frames into memory of the caller. */
export interface ZstdDecoder {
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
 * block and most of the garbage of a scan. The handle behind a zlib stream writes where it is told. It is no documented
 * interface, so it is tried out first, and what does not behave as expected is not used: see
 * docs/decisions/004-zstd-handle.md. Figures: bench/zstd.mjs.
 */
export function openZstdDecoder(): ZstdDecoder | undefined {
  if (typeof zlib.createZstdDecompress !== "function") return undefined;
  try {
    const decoder = handleDecoder(zlib.createZstdDecompress());
    return decoder !== undefined && isSound(decoder) ? decoder : undefined;
  } catch {
    return undefined;
  }
}

function handleDecoder(stream: object): ZstdDecoder | undefined {
  const opened = zlibHandle(stream);
  if (opened === undefined) return undefined;
  const { handle, state } = opened;
  let failed = false;
  handle.onerror = () => {
    failed = true;
  };
  const end = zlib.constants.ZSTD_e_end;
  const decodeOnce = (stored: Uint8Array, into: Uint8Array): number | undefined => {
    // Some room is left behind a frame of the right length, so that a longer one shows.
    const room = into.byteLength + paddingBytes;
    const output = new Uint8Array(into.buffer, into.byteOffset, room);
    failed = false;
    handle.writeSync(end, stored, 0, stored.byteLength, output, 0, room);
    const left = state[1]!;
    return failed || left > 0 ? undefined : room - state[0]!;
  };
  let isNew = true;
  return {
    decode(stored, into) {
      if (stored.byteLength === 0) return undefined;
      // A frame that ended leaves the context as new. One that only seemed to have ended makes the next one fail, whose
      // first bytes are neither a block nor a checksum of it: that one is read once more.
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
function isSound(decoder: ZstdDecoder): boolean {
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
