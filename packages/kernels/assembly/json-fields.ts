import {
  ABSENT,
  allFields,
  BOOLEAN,
  clearRow,
  ESCAPED,
  found,
  MALFORMED,
  matchFields,
  noteFields,
  NUMBER,
  OK,
  OPEN_ARRAY,
  OPEN_OBJECT,
  OPEN_STRING,
  openFields,
  openRow,
  TEXT,
  UNKNOWN_VALUE,
  UNSURE,
} from "./fields";

const MAX_DEPTH: u32 = 64;
/** Of each object that is open: its end, the fields that may be in it, and the length of their names' beginning. */
const stack = memory.data(12 * 66);

/** Whether the text read last had escapes, and bytes beyond ASCII. */
let escaped: bool = false;
let wide: bool = false;

/** Finds fields in the selected rows of a block; the rules are those of src/twin/json-fields.ts. */
export function scanJsonFields(
  bytes: usize,
  low: u32,
  size: u32,
  offsets: usize,
  selection: usize,
  count: u32,
  names: usize,
  starts: usize,
  lengths: usize,
  kinds: usize,
  status: usize,
  complete: bool,
): void {
  openFields(bytes, names, starts, lengths, kinds, count);
  for (let i: u32 = 0; i < count; i++) {
    const slot = offsets + (<usize>load<u32>(selection + (<usize>i << 2)) << 2);
    const end = min(load<u32>(slot, 4), size);
    const start = max(min(load<u32>(slot), end), low);
    openRow(i);
    const result = readLine(bytes + start, bytes + end, complete);
    if (result == UNSURE) clearRow();
    store<u8>(status + i, result);
  }
}

function readLine(start: usize, lineEnd: usize, complete: bool): u32 {
  let at = start;
  let end = lineEnd;
  let live = allFields;
  let position: u32 = 0;
  let depth: u32 = 0;
  // Each round of the outer loop enters an object; leaving one goes on within the object around it.
  while (true) {
    if (++depth > MAX_DEPTH) return UNSURE;
    at = skipBlanks(at, end);
    if (at >= end || load<u8>(at) != 0x7b) return OPEN_OBJECT;
    at = skipBlanks(at + 1, end);
    if (at >= end) return MALFORMED;
    let enters = false;
    while (!enters) {
      const byte = <u32>load<u8>(at);
      if (byte == 0x7d) {
        if (--depth == 0) return OK;
        at = end;
        const frame = stack + <usize>depth * 12;
        end = load<u32>(frame);
        live = load<u32>(frame, 4);
        position = load<u32>(frame, 8);
      } else {
        if (byte != 0x22) return OPEN_OBJECT;
        const key = at + 1;
        const keyEnd = textEnd(key, end);
        if (keyEnd >= end) return MALFORMED;
        if (live != 0 ? isOdd(key, keyEnd) : escaped) return UNSURE;
        at = skipBlanks(keyEnd + 1, end);
        if (at >= end || load<u8>(at) != 0x3a) return MALFORMED;
        at = skipBlanks(at + 1, end);
        if (at >= end) return MALFORMED;
        const first = <u32>load<u8>(at);
        if (first == 0x7b) {
          const close = blockEnd(at, end, 0x7b, 0x7d);
          if (close == 0) return OPEN_OBJECT;
          const nameless = position == 0 && keyEnd == key;
          const inner = nameless ? live : matchFields(key, keyEnd, position, live, true);
          if (inner != 0 || complete) {
            const frame = stack + <usize>depth * 12;
            store<u32>(frame, <u32>end);
            store<u32>(frame, live, 4);
            store<u32>(frame, position, 8);
            position = nameless ? 0 : positionBehind(key, keyEnd, position);
            live = inner;
            end = close;
            enters = true;
            continue;
          }
          at = close;
        } else if (first == 0x5b) {
          at = blockEnd(at, end, 0x5b, 0x5d);
          if (at == 0) return OPEN_ARRAY;
        } else {
          let kind: u32;
          let from = at;
          let to: usize;
          if (first == 0x22) {
            from++;
            to = textEnd(from, end);
            if (to >= end) return OPEN_STRING;
            kind = escaped ? ESCAPED : TEXT;
            at = to + 1;
          } else {
            to = wordEnd(at, end);
            kind = kindOfWord(at, to);
            if (kind == UNSURE) return UNKNOWN_VALUE;
            at = to;
          }
          const wanted = live & ~found;
          if (kind != ABSENT && wanted != 0) {
            const fields = matchFields(key, keyEnd, position, wanted, false);
            if (fields != 0) noteFields(fields, kind, from, to);
          }
          if (kind != ABSENT && found == allFields && !complete) return OK;
        }
      }
      at = skipBlanks(at, end);
      if (at >= end) return OPEN_ARRAY;
      const next = <u32>load<u8>(at);
      if (next == 0x7d) continue;
      if (next != 0x2c) return OPEN_OBJECT;
      at = skipBlanks(at + 1, end);
      if (at >= end) return OPEN_ARRAY;
    }
  }
}

/** Length of a name's beginning behind the key of an object and the underscore that joins what is in it. */
function positionBehind(key: usize, keyEnd: usize, position: u32): u32 {
  const lead: u32 = position == 0 && <u32>load<u8>(key) - 0x30 < 10 ? 1 : 0;
  return position + lead + <u32>(keyEnd - key) + 1;
}

// @ts-ignore: decorator
@inline
function isOdd(key: usize, keyEnd: usize): bool {
  if (escaped || wide) return true;
  return keyEnd > key && (load<u8>(key) <= 0x20 || load<u8>(keyEnd - 1) <= 0x20);
}

/** Position of the quote that closes the text from `from` on, at or behind `end` without one. */
// @ts-ignore: decorator
@inline
function textEnd(from: usize, end: usize): usize {
  const text = v128.load(from);
  const mask = i8x16.bitmask(
    v128.or(i8x16.eq(text, i8x16.splat(0x22)), i8x16.eq(text, i8x16.splat(0x5c))),
  );
  if (mask != 0) {
    const length = ctz(mask);
    if (load<u8>(from + length) == 0x22) {
      escaped = false;
      wide = (i8x16.bitmask(text) & ((1 << length) - 1)) != 0;
      return from + length;
    }
  }
  return longTextEnd(from, end);
}

function longTextEnd(from: usize, end: usize): usize {
  const quote = i8x16.splat(0x22);
  const slash = i8x16.splat(0x5c);
  let high: u32 = 0;
  escaped = false;
  let p = from;
  while (p < end) {
    const text = v128.load(p);
    const mask = i8x16.bitmask(v128.or(i8x16.eq(text, quote), i8x16.eq(text, slash)));
    if (mask == 0) {
      high |= i8x16.bitmask(text);
      p += 16;
      continue;
    }
    const length = ctz(mask);
    high |= i8x16.bitmask(text) & ((1 << length) - 1);
    p += length;
    if (load<u8>(p) == 0x22) break;
    escaped = true;
    p += 2;
  }
  wide = high != 0;
  return p;
}

/**
 * Behind the bracket that closes the one at `from`, counting only these two kinds outside of strings; 0 without one.
 * In 16 places at once: a prefix sum over the quotes tells which of them lie within strings.
 */
function blockEnd(from: usize, end: usize, open: u32, close: u32): usize {
  const opens = i8x16.splat(<i8>open);
  const closes = i8x16.splat(<i8>close);
  let level: i32 = 0;
  let inside: u32 = 0;
  let p = from;
  while (p < end) {
    const text = v128.load(p);
    if (v128.any_true(i8x16.eq(text, i8x16.splat(0x5c)))) {
      const stop = min(p + 16, end);
      while (p < stop) {
        const byte = <u32>load<u8>(p++);
        if (inside != 0) {
          if (byte == 0x22) inside = 0;
          else if (byte == 0x5c) p++;
        } else if (byte == 0x22) inside = 0xffff;
        else if (byte == open) level++;
        else if (byte == close && --level == 0) return p;
      }
      continue;
    }
    let strings = <u32>i8x16.bitmask(i8x16.eq(text, i8x16.splat(0x22)));
    strings ^= strings << 1;
    strings ^= strings << 2;
    strings ^= strings << 4;
    strings ^= strings << 8;
    strings = (strings ^ inside) & 0xffff;
    inside = 0 - (strings >> 15) & 0xffff;
    const left = end - p;
    const outside = ~strings & (left >= 16 ? 0xffff : (1 << left) - 1);
    let ups = <u32>i8x16.bitmask(i8x16.eq(text, opens)) & outside;
    let downs = <u32>i8x16.bitmask(i8x16.eq(text, closes)) & outside;
    if (<i32>popcnt(downs) < level) {
      level += popcnt(ups) - popcnt(downs);
    } else {
      while (downs != 0) {
        const before = (downs & (0 - downs)) - 1;
        level += popcnt(ups & before) - 1;
        if (level == 0) return p + ctz(downs) + 1;
        ups &= ~before;
        downs &= downs - 1;
      }
      level += popcnt(ups);
    }
    p += 16;
  }
  return 0;
}

/** 1 for the bytes that end a number or word: blanks, comma, closing brackets. */
const wordEnds = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

// @ts-ignore: decorator
@inline
function wordEnd(from: usize, end: usize): usize {
  let at = from;
  while (at < end && load<u8>(wordEnds + load<u8>(at)) == 0) at++;
  return at;
}

/** Kind of a value that is no string, object or array; ABSENT for null, UNSURE for anything unknown. */
function kindOfWord(from: usize, to: usize): u32 {
  const length = to - from;
  const first = <u32>load<u8>(from);
  if (length > 0 && (first == 0x2d || first - 0x30 < 10)) return NUMBER;
  const four = load<u32>(from);
  if (length == 4) return four == 0x65757274 ? BOOLEAN : four == 0x6c6c756e ? ABSENT : UNSURE;
  return length == 5 && four == 0x736c6166 && load<u8>(from, 4) == 0x65 ? BOOLEAN : UNSURE;
}

// @ts-ignore: decorator
@inline
function skipBlanks(from: usize, end: usize): usize {
  return load<u8>(from) > 0x20 ? from : skipManyBlanks(from, end);
}

function skipManyBlanks(from: usize, end: usize): usize {
  let at = from;
  while (at < end) {
    const byte = <u32>load<u8>(at);
    if (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09) return at;
    at++;
  }
  return at;
}
