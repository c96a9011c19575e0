import {
  ABSENT,
  clearRow,
  CODED,
  found,
  hasEnough,
  isWantedLength,
  matchKeys,
  noteFields,
  openFields,
  openRow,
  PLAIN,
} from "./fields";
import { blockEnd, kindOfWord, skipBlanks, UNKNOWN, wordEnd } from "./json-values";
import { escaped, quoteEnd, wide } from "../quoted";

/** Finds the values of keys in the selected rows of a block; the rules are those of src/twin/json-keys.ts. */
export function scanJsonKeys(
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
): void {
  openFields(bytes, names, starts, lengths, kinds, count, enough);
  for (let i: u32 = 0; i < count; i++) {
    const slot = offsets + (<usize>load<u32>(selection + (<usize>i << 2)) << 2);
    const end = min(load<u32>(slot, 4), size);
    const start = max(min(load<u32>(slot), end), low);
    openRow(i);
    const isRead = readMembers(bytes + start, bytes + end);
    if (!isRead) clearRow();
    store<u8>(reads + i, isRead ? 1 : 0);
  }
}

/** False for a line that is no object, or breaks off before all keys were found. */
function readMembers(start: usize, end: usize): bool {
  if (start >= end || load<u8>(start) != 0x7b) return false;
  let at = skipBlanks(start + 1, end);
  while (at < end) {
    const byte = <u32>load<u8>(at);
    if (byte == 0x7d) return true;
    if (byte != 0x22) return false;
    const key = at + 1;
    const keyEnd = quoteEnd(key, end);
    if (keyEnd >= end || escaped) return false;
    at = skipBlanks(keyEnd + 1, end);
    if (at >= end || load<u8>(at) != 0x3a) return false;
    at = skipBlanks(at + 1, end);
    if (at >= end) return false;
    const first = <u32>load<u8>(at);
    let kind: u32 = PLAIN;
    let from = at;
    let to: usize;
    if (first == 0x22) {
      from++;
      to = quoteEnd(from, end);
      if (to >= end) return false;
      if (escaped || wide) kind = CODED;
      at = to + 1;
    } else if (first == 0x7b || first == 0x5b) {
      to = blockEnd(at, end, first, first + 2);
      if (to == 0) return false;
      at = to;
    } else {
      to = wordEnd(at, end);
      const word = kindOfWord(at, to);
      if (word == UNKNOWN) return false;
      at = to;
      if (word == ABSENT) to = from;
    }
    if (isWantedLength(<u32>(keyEnd - key))) {
      const fields = matchKeys(key, keyEnd) & ~found;
      if (fields != 0) {
        noteFields(fields, kind, from, to);
        if (hasEnough()) return true;
      }
    }
    at = skipBlanks(at, end);
    if (at >= end) return false;
    const next = <u32>load<u8>(at);
    if (next == 0x7d) return true;
    if (next != 0x2c) return false;
    at = skipBlanks(at + 1, end);
  }
  return false;
}
