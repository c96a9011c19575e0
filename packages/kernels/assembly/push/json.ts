import {
  addPair,
  closeColumns,
  openColumns,
  pairCount,
  rowCount,
  setLabels,
  setRow,
  startRow,
  startStream,
  streamCount,
  truncate,
} from "./columns";
import {
  clearFault,
  fail,
  JSON_BODY,
  JSON_ENTRY,
  JSON_LABELS,
  JSON_LINE,
  JSON_METADATA,
  JSON_METADATA_VALUE,
  JSON_STREAM,
  JSON_STREAMS,
  JSON_TIMESTAMP,
  JSON_TIMESTAMP_TYPE,
  JSON_VALUES,
} from "./fault";
import {
  advance,
  at,
  FAILED,
  failHere,
  isString,
  length,
  moveTo,
  NEXT,
  openText,
  peek,
  readKey,
  readString,
  skipValue,
  skipWord,
  start,
} from "../json-text";

/*
 * Measured in MB/s of raw lines: 1400 for mixed lines, a quarter of them JSON with its escapes, 2600 for lines with few
 * escapes; the twin 500 and 800. One core of two, Node 24.
 */

/** "streams", "stream", "values" */
const keyStreams = memory.data<u8>([0x73, 0x74, 0x72, 0x65, 0x61, 0x6d, 0x73]);
const keyValues = memory.data<u8>([0x76, 0x61, 0x6c, 0x75, 0x65, 0x73]);

const NO_TIMESTAMP_SECONDS: f64 = -62135596800;
const NULL_WORD: u32 = 0x6e756c6c;

let base: usize = 0;
let second: f64 = 0;
let nano: u32 = 0;

/**
 * Scans a JSON push body into the columns of the control block, unescaping it in place; 64 zero bytes must follow
 * it. The grammar is that of src/twin/json-push.ts.
 */
export function scanJsonPush(bytes: usize, size: u32, control: usize): i32 {
  clearFault();
  openColumns(control);
  base = bytes;
  openText(bytes, bytes + size);
  readBody();
  return closeColumns(bytes);
}

function readBody(): bool {
  if (peek() == 0x6e) {
    if (!skipWord(NULL_WORD, 0)) return false;
  } else {
    if (!open(0x7b, JSON_BODY)) return false;
    let next = advance(true, 0x7d);
    while (next == NEXT) {
      if (!readKey()) return false;
      if (isString(keyStreams, 7)) {
        if (!readStreams()) return false;
      } else if (!skipValue()) {
        return false;
      }
      next = advance(false, 0x7d);
    }
    if (next == FAILED) return false;
  }
  return true;
}

function readStreams(): bool {
  truncate(0, 0, 0);
  if (peek() == 0x6e) return skipWord(NULL_WORD, 0);
  if (!open(0x5b, JSON_STREAMS)) return false;
  let next = advance(true, 0x5d);
  while (next == NEXT) {
    if (!readStream()) return false;
    next = advance(false, 0x5d);
  }
  return next != FAILED;
}

function readStream(): bool {
  if (!open(0x7b, JSON_STREAM) || !startStream(at)) return false;
  const streams = streamCount;
  const rows = rowCount;
  const pairs = pairCount;
  let next = advance(true, 0x7d);
  while (next == NEXT) {
    if (!readKey()) return false;
    if (isString(keyStreams, 6)) {
      if (!readLabels()) return false;
    } else if (isString(keyValues, 6)) {
      truncate(streams, rows, pairs);
      if (!readValues()) return false;
    } else if (!skipValue()) {
      return false;
    }
    next = advance(false, 0x7d);
  }
  return next != FAILED;
}

function readLabels(): bool {
  setLabels(0, 0);
  const byte = peek();
  if (byte == 0x6e) return skipWord(NULL_WORD, 0);
  if (byte != 0x7b) return failHere(JSON_LABELS);
  const from = at;
  if (!skipValue()) return false;
  setLabels(<u32>(from - base), <u32>(at - from));
  return true;
}

function readValues(): bool {
  if (peek() == 0x6e) return skipWord(NULL_WORD, 0);
  if (!open(0x5b, JSON_VALUES)) return false;
  let next = advance(true, 0x5d);
  while (next == NEXT) {
    if (!readEntry()) return false;
    next = advance(false, 0x5d);
  }
  return next != FAILED;
}

function readEntry(): bool {
  if (!open(0x5b, JSON_ENTRY) || !startRow(at)) return false;
  let lineStart = at;
  let lineLength: u32 = 0;
  second = NO_TIMESTAMP_SECONDS;
  nano = 0;
  let next = advance(true, 0x5d);
  for (let item = 0; next == NEXT; item++) {
    if (item == 0) {
      if (peek() != 0x22) return failHere(JSON_TIMESTAMP_TYPE);
      if (!readString() || !readTimestamp()) return false;
    } else if (item == 1) {
      if (peek() != 0x22) return failHere(JSON_LINE);
      if (!readString()) return false;
      lineStart = start;
      lineLength = length;
    } else if (item == 2) {
      if (!readMetadata()) return false;
    } else if (!skipValue()) {
      return false;
    }
    next = advance(false, 0x5d);
  }
  if (next == FAILED) return false;
  setRow(second, nano, <u32>(lineStart - base), lineLength);
  return true;
}

function readMetadata(): bool {
  if (!open(0x7b, JSON_METADATA)) return false;
  let next = advance(true, 0x7d);
  while (next == NEXT) {
    if (!readKey()) return false;
    const name = start;
    const nameLength = length;
    if (peek() != 0x22) return failHere(JSON_METADATA_VALUE);
    if (!readString()) return false;
    if (!addPair(at, <u32>(name - base), nameLength, <u32>(start - base), length)) return false;
    next = advance(false, 0x7d);
  }
  return next != FAILED;
}

/** Splits the string read last, a 64-bit decimal count of nanoseconds, into seconds and the rest. */
function readTimestamp(): bool {
  const stop = start + length;
  const negative = length > 0 && load<u8>(start) == 0x2d;
  let from = negative ? start + 1 : start;
  if (from == stop) return fail(JSON_TIMESTAMP, start);
  while (from < stop - 1 && load<u8>(from) == 0x30) from++;
  if (stop - from > 19) return fail(JSON_TIMESTAMP, start);
  let total: u64 = 0;
  for (; from < stop; from++) {
    const digit = <u32>load<u8>(from) - 0x30;
    if (digit > 9) return fail(JSON_TIMESTAMP, start);
    total = total * 10 + digit;
  }
  if (total > <u64>i64.MAX_VALUE + <u64>negative) return fail(JSON_TIMESTAMP, start);
  const whole = total / 1000000000;
  const rest = <u32>(total - whole * 1000000000);
  const borrow = negative && rest > 0;
  second = negative ? <f64>(-(<i64>whole) - <i64>borrow) : <f64>whole;
  nano = borrow ? 1000000000 - rest : rest;
  return true;
}

function open(byte: i32, code: i32): bool {
  if (peek() != byte) return failHere(code);
  moveTo(at + 1);
  return true;
}
