/** Whether the text read last had escapes, and bytes beyond ASCII. */
export let escaped: bool = false;
export let wide: bool = false;

/** Position of the quote that closes the text from `from` on, at or behind `end` without one. */
@inline
export function quoteEnd(from: usize, end: usize): usize {
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
  return longQuoteEnd(from, end);
}

function longQuoteEnd(from: usize, end: usize): usize {
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
