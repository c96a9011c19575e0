/**
 * Puts what a scan found together, ready to be copied out at one go: the columns of the control block one behind the other,
 * and the texts without what stood between them: lines, then values, then labels, then names, each in their order, so that
 * the lines of neighbouring rows are one range. Returns how many bytes the texts have; they are never more than the body.
 * Reads and writes up to 15 bytes behind each range. The order of the columns is that of src/wasm/push.ts.
 */
export function packPush(source: usize, control: usize, columns: usize, texts: usize): u32 {
  const streams = load<u32>(control, 60);
  const rows = load<u32>(control, 64);
  const pairs = load<u32>(control, 68);
  const seconds = columns;
  const labelStart = seconds + ((<usize>rows) << 3);
  const labelLength = labelStart + ((<usize>streams) << 2);
  const rowStart = labelLength + ((<usize>streams) << 2);
  const nanos = rowStart + ((<usize>streams + 1) << 2);
  const lineStart = nanos + ((<usize>rows) << 2);
  const lineLength = lineStart + ((<usize>rows) << 2);
  const metaStart = lineLength + ((<usize>rows) << 2);
  const nameStart = metaStart + ((<usize>rows + 1) << 2);
  const nameLength = nameStart + ((<usize>pairs) << 2);
  const valueStart = nameLength + ((<usize>pairs) << 2);
  const valueLength = valueStart + ((<usize>pairs) << 2);
  memory.copy(seconds, load<u32>(control, 24), (<usize>rows) << 3);
  copyColumn(rowStart, load<u32>(control, 20), streams + 1);
  copyColumn(nanos, load<u32>(control, 28), rows);
  copyColumn(metaStart, load<u32>(control, 40), rows + 1);
  base = texts;
  let end = texts;
  end = packTexts(source, load<u32>(control, 32), load<u32>(control, 36), lineStart, rows, end);
  copyColumn(lineLength, load<u32>(control, 36), rows);
  end = packTexts(source, load<u32>(control, 52), load<u32>(control, 56), valueStart, pairs, end);
  copyColumn(valueLength, load<u32>(control, 56), pairs);
  end = packTexts(source, load<u32>(control, 12), load<u32>(control, 16), labelStart, streams, end);
  copyColumn(labelLength, load<u32>(control, 16), streams);
  end = packTexts(source, load<u32>(control, 44), load<u32>(control, 48), nameStart, pairs, end);
  copyColumn(nameLength, load<u32>(control, 48), pairs);
  return <u32>(end - texts);
}

let base: usize = 0;

function copyColumn(target: usize, source: usize, count: u32): void {
  memory.copy(target, source, (<usize>count) << 2);
}

/** Copies the ranges one behind the other to `end` and writes where each begins; returns the new end. */
function packTexts(
  source: usize,
  starts: usize,
  lengths: usize,
  packed: usize,
  count: u32,
  end: usize,
): usize {
  for (let i: u32 = 0; i < count; i++) {
    const slot = (<usize>i) << 2;
    const from = source + load<u32>(starts + slot);
    const length = <usize>load<u32>(lengths + slot);
    store<u32>(packed + slot, <u32>(end - base));
    for (let at: usize = 0; at < length; at += 16) v128.store(end + at, v128.load(from + at));
    end += length;
  }
  return end;
}
