import type { PreparedStage } from "./row-state.js";

/** `| decolorize`: takes out the escape sequences of terminals. */
export const prepareDecolorize: PreparedStage = ({ labels, line }) => {
  const { arena } = labels;
  return () => {
    const { bytes, start, end } = line;
    const first = nextEscape(bytes, start, end);
    if (first === end) return true;
    arena.reserve(end - start);
    const out = arena.bytes;
    const from = arena.used;
    let to = from;
    for (let at = start, stop = first; ; stop = nextEscape(bytes, at, end)) {
      while (at < stop) out[to++] = bytes[at++]!;
      if (at === end) break;
      const length = sequenceLength(bytes, at, end);
      if (length > 0) at += length;
      else out[to++] = bytes[at++]!;
    }
    arena.used = to;
    line.replace(out, from, to);
    return true;
  };
};

/** Offset of the next ESC (0x1b) or CSI (U+009B), or the end. */
function nextEscape(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end; i++) {
    const c = bytes[i]!;
    if (c === 0x1b || (c === 0xc2 && i + 1 < end && bytes[i + 1] === 0x9b)) return i;
  }
  return end;
}

/** Length of the escape sequence at `at`, or 0: intermediate signs, then a text up to BEL or a control sequence. */
function sequenceLength(bytes: Uint8Array, start: number, end: number): number {
  let at = start + (bytes[start] === 0x1b ? 1 : 2);
  while (at < end && isIntermediate(bytes[at]!)) at++;
  let bell = at;
  while (bell < end && (isAlphanumeric(bytes[bell]!) || bytes[bell] === 59)) bell++;
  if (bell < end && bytes[bell] === 7) return bell + 1 - start;
  const stop = controlEnd(bytes, at, end);
  return stop < 0 ? 0 : stop - start;
}

/**
 * End of `(digits{1,4}(;digits{0,4})*)? final`, as long as it can be, or -1. A digit can be the final byte too, so
 * when none follows the last digit takes its place.
 */
function controlEnd(bytes: Uint8Array, from: number, end: number): number {
  let lastFinal = -1;
  let at = from;
  let digits = 0;
  while (at < end && digits < 4 && isDigit(bytes[at]!)) {
    lastFinal = at + 1;
    at++;
    digits++;
  }
  while (digits > 0 && at < end && bytes[at] === 59) {
    at++;
    for (let n = 0; n < 4 && at < end && isDigit(bytes[at]!); n++) {
      lastFinal = at + 1;
      at++;
    }
  }
  return at < end && isFinal(bytes[at]!) ? at + 1 : lastFinal;
}

function isIntermediate(c: number): boolean {
  return c === 91 || c === 93 || c === 40 || c === 41 || c === 35 || c === 59 || c === 63;
}

function isDigit(c: number): boolean {
  return c >= 48 && c <= 57;
}

function isAlphanumeric(c: number): boolean {
  const lower = c | 32;
  return isDigit(c) || (lower >= 97 && lower <= 122);
}

/** `0-9 A-P R Z c f-n t q r y = > < ~` */
function isFinal(c: number): boolean {
  return (
    isDigit(c) ||
    (c >= 65 && c <= 80) ||
    c === 82 ||
    c === 90 ||
    c === 99 ||
    (c >= 102 && c <= 110) ||
    c === 113 ||
    c === 114 ||
    c === 116 ||
    c === 121 ||
    (c >= 60 && c <= 62) ||
    c === 126
  );
}
