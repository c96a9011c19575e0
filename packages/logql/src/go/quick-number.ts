/** Digits that a double holds exactly. */
const digitsMax = 15;
const powers = Array.from({ length: 23 }, (_, i) => 10 ** i);

/**
 * The value of `[-+]digits[.digits]`; NaN for any other form, which a full parser must read. Exact: digits and power
 * of ten are both exact doubles, so the division rounds once.
 */
export function quickNumber(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  const sign = bytes[at];
  if (sign === 45 || sign === 43) at++;
  const first = at;
  let value = 0;
  let point = -1;
  for (; at < end; at++) {
    const c = bytes[at]!;
    if (c >= 48 && c <= 57) value = value * 10 + (c - 48);
    else if (c === 46 && point < 0) point = at;
    else return Number.NaN;
  }
  const count = at - first - (point < 0 ? 0 : 1);
  if (count === 0 || count > digitsMax) return Number.NaN;
  if (point >= 0) value /= powers[end - point - 1]!;
  return sign === 45 ? -value : value;
}

/** The value of digits alone, as a size in bytes is written; NaN for any other form. */
export function quickSize(bytes: Uint8Array, start: number, end: number): number {
  for (let i = start; i < end; i++) {
    if (bytes[i]! < 48 || bytes[i]! > 57) return Number.NaN;
  }
  return quickNumber(bytes, start, end);
}

/** ns of `digits[.digits]unit` with one unit; NaN for any other form. */
export function quickDuration(bytes: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && !isDigitOrPoint(bytes[at - 1]!)) at--;
  const unit = unitOf(bytes, at, end);
  const value = at > start && bytes[start]! >= 48 ? quickNumber(bytes, start, at) : Number.NaN;
  const total = value * unit;
  // a fraction of a nanosecond is cut by rules of its own
  return Number.isInteger(total) && total < 9e15 ? total : Number.NaN;
}

function isDigitOrPoint(c: number): boolean {
  return (c >= 48 && c <= 57) || c === 46;
}

function unitOf(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at];
  if (end - at === 1) {
    if (first === 115) return 1e9;
    if (first === 109) return 60e9;
    return first === 104 ? 3600e9 : Number.NaN;
  }
  if (end - at !== 2 || bytes[at + 1] !== 115) return Number.NaN;
  if (first === 109) return 1e6;
  if (first === 117) return 1e3;
  return first === 110 ? 1 : Number.NaN;
}
