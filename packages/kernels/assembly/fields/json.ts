import {
  ABSENT,
  allFields,
  clearRow,
  CODED,
  found,
  hasEnough,
  isWantedLength,
  matchFields,
  noteFields,
  openFields,
  openRow,
  PLAIN,
} from "./fields";
import { blockEnd, kindOfWord, skipBlanks, UNKNOWN, wordEnd } from "./json-values";
import { escaped, quoteEnd, wide } from "../quoted";

/*
 * Measured on lines of 260 bytes with 12 members, in ns a line: 32 for a field that stands early, 110 for two further
 * back, 155 when each line is read to its end; the twin 5 to 6 times as long. One core of two, Node 24.
 */

const MAX_DEPTH: u32 = 64;
/** Of each object that is open: its end, the fields that may be in it, and the length of their names' beginning. */
const stack = memory.data(12 * 66);

/** Finds fields in the selected rows of a block; the rules are those of src/twin/fields.ts. */
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
  reads: usize,
  enough: u32,
  complete: bool,
): void {
  openFields(bytes, names, starts, lengths, kinds, count, enough);
  for (let i: u32 = 0; i < count; i++) {
    const slot = offsets + (<usize>load<u32>(selection + (<usize>i << 2)) << 2);
    const end = min(load<u32>(slot, 4), size);
    const start = max(min(load<u32>(slot), end), low);
    openRow(i);
    const isRead = readLine(bytes + start, bytes + end, complete);
    if (!isRead) clearRow();
    store<u8>(reads + i, isRead ? 1 : 0);
  }
}

/** False for a line that is broken, or odd in a way that is not judged here. */
function readLine(start: usize, lineEnd: usize, complete: bool): bool {
  let at = start;
  let end = lineEnd;
  let live = allFields;
  let position: u32 = 0;
  let depth: u32 = 0;
  // Each round of the outer loop enters an object; leaving one goes on within the object around it.
  while (true) {
    if (++depth > MAX_DEPTH) return false;
    at = skipBlanks(at, end);
    if (at >= end || load<u8>(at) != 0x7b) return false;
    at = skipBlanks(at + 1, end);
    if (at >= end) return false;
    let enters = false;
    while (!enters) {
      const byte = <u32>load<u8>(at);
      if (byte == 0x7d) {
        if (--depth == 0) return true;
        at = end;
        const frame = stack + <usize>depth * 12;
        end = load<u32>(frame);
        live = load<u32>(frame, 4);
        position = load<u32>(frame, 8);
      } else {
        if (byte != 0x22) return false;
        const key = at + 1;
        const keyEnd = quoteEnd(key, end);
        if (keyEnd >= end) return false;
        if (live != 0 ? isOdd(key, keyEnd) : escaped) return false;
        at = skipBlanks(keyEnd + 1, end);
        if (at >= end || load<u8>(at) != 0x3a) return false;
        at = skipBlanks(at + 1, end);
        if (at >= end) return false;
        const first = <u32>load<u8>(at);
        if (first == 0x7b) {
          const close = blockEnd(at, end, 0x7b, 0x7d);
          if (close == 0) return false;
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
          if (at == 0) return false;
        } else {
          let kind: u32;
          let from = at;
          let to: usize;
          if (first == 0x22) {
            from++;
            to = quoteEnd(from, end);
            if (to >= end) return false;
            kind = escaped || wide ? CODED : PLAIN;
            at = to + 1;
          } else {
            to = wordEnd(at, end);
            kind = kindOfWord(at, to);
            if (kind == UNKNOWN) return false;
            at = to;
          }
          const wanted = live & ~found;
          const length = position + <u32>(keyEnd - key);
          if (kind != ABSENT && wanted != 0 && isWantedLength(length)) {
            const fields = matchFields(key, keyEnd, position, wanted, false);
            if (fields != 0) noteFields(fields, kind, from, to);
          }
          if (kind != ABSENT && hasEnough()) return true;
        }
      }
      at = skipBlanks(at, end);
      if (at >= end) return false;
      const next = <u32>load<u8>(at);
      if (next == 0x7d) continue;
      if (next != 0x2c) return false;
      at = skipBlanks(at + 1, end);
      if (at >= end) return false;
    }
  }
}

/** Length of a name's beginning behind the key of an object and the underscore that joins what is in it. */
function positionBehind(key: usize, keyEnd: usize, position: u32): u32 {
  const lead: u32 = position == 0 && <u32>load<u8>(key) - 0x30 < 10 ? 1 : 0;
  return position + lead + <u32>(keyEnd - key) + 1;
}

@inline
function isOdd(key: usize, keyEnd: usize): bool {
  if (escaped || wide) return true;
  return keyEnd > key && (load<u8>(key) <= 0x20 || load<u8>(keyEnd - 1) <= 0x20);
}
