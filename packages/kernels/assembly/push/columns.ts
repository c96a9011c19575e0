import { COLUMNS_FULL, fail, fault, faultAt } from "./fault";

/**
 * The columns of a push, as src/wasm/push.ts lays them out. The control block holds u32 values: three
 * capacities, then twelve column pointers in the order below, then what the scan returns: streams, rows, pairs, the
 * position of a fault and which capacity was too small (0 streams, 1 rows, 2 pairs).
 */
let control: usize = 0;
let streamCapacity: u32 = 0;
let rowCapacity: u32 = 0;
let pairCapacity: u32 = 0;
let labelStart: usize = 0;
let labelLength: usize = 0;
let rowStart: usize = 0;
let seconds: usize = 0;
let nanos: usize = 0;
let lineStart: usize = 0;
let lineLength: usize = 0;
let metaStart: usize = 0;
let nameStart: usize = 0;
let nameLength: usize = 0;
let valueStart: usize = 0;
let valueLength: usize = 0;
let short: u32 = 0;

export let streamCount: u32 = 0;
export let rowCount: u32 = 0;
export let pairCount: u32 = 0;

export function openColumns(at: usize): void {
  control = at;
  streamCapacity = load<u32>(at);
  rowCapacity = load<u32>(at, 4);
  pairCapacity = load<u32>(at, 8);
  labelStart = load<u32>(at, 12);
  labelLength = load<u32>(at, 16);
  rowStart = load<u32>(at, 20);
  seconds = load<u32>(at, 24);
  nanos = load<u32>(at, 28);
  lineStart = load<u32>(at, 32);
  lineLength = load<u32>(at, 36);
  metaStart = load<u32>(at, 40);
  nameStart = load<u32>(at, 44);
  nameLength = load<u32>(at, 48);
  valueStart = load<u32>(at, 52);
  valueLength = load<u32>(at, 56);
  streamCount = 0;
  rowCount = 0;
  pairCount = 0;
  short = 0;
}

/** Closes the ranges and writes the counts and the fault, whose position is relative to `base`. */
export function closeColumns(base: usize): i32 {
  store<u32>(rowStart + ((<usize>streamCount) << 2), rowCount);
  store<u32>(metaStart + ((<usize>rowCount) << 2), pairCount);
  store<u32>(control, streamCount, 60);
  store<u32>(control, rowCount, 64);
  store<u32>(control, pairCount, 68);
  store<u32>(control, fault == 0 ? 0 : <u32>(faultAt - base), 72);
  store<u32>(control, short, 76);
  return fault;
}

export function startStream(position: usize): bool {
  if (streamCount >= streamCapacity) {
    short = 0;
    return fail(COLUMNS_FULL, position);
  }
  const slot = (<usize>streamCount) << 2;
  store<u32>(labelStart + slot, 0);
  store<u32>(labelLength + slot, 0);
  store<u32>(rowStart + slot, rowCount);
  streamCount++;
  return true;
}

export function setLabels(start: u32, length: u32): void {
  const slot = (<usize>(streamCount - 1)) << 2;
  store<u32>(labelStart + slot, start);
  store<u32>(labelLength + slot, length);
}

export function startRow(position: usize): bool {
  if (rowCount >= rowCapacity) {
    short = 1;
    return fail(COLUMNS_FULL, position);
  }
  store<u32>(metaStart + ((<usize>rowCount) << 2), pairCount);
  rowCount++;
  return true;
}

export function setRow(second: f64, nano: u32, start: u32, length: u32): void {
  const row = <usize>(rowCount - 1);
  const slot = row << 2;
  store<f64>(seconds + (row << 3), second);
  store<u32>(nanos + slot, nano);
  store<u32>(lineStart + slot, start);
  store<u32>(lineLength + slot, length);
}

export function addPair(
  position: usize,
  name: u32,
  nameBytes: u32,
  value: u32,
  valueBytes: u32,
): bool {
  if (pairCount >= pairCapacity) {
    short = 2;
    return fail(COLUMNS_FULL, position);
  }
  const slot = (<usize>pairCount) << 2;
  store<u32>(nameStart + slot, name);
  store<u32>(nameLength + slot, nameBytes);
  store<u32>(valueStart + slot, value);
  store<u32>(valueLength + slot, valueBytes);
  pairCount++;
  return true;
}

export function truncate(streams: u32, rows: u32, pairs: u32): void {
  streamCount = streams;
  rowCount = rows;
  pairCount = pairs;
}
