/** A float with so many decimals, as Go's `%.2f`: exact halves go to the even neighbour. */
export function formatFixed(value: number, decimals: number): string {
  if (!Number.isInteger(Math.abs(value) * 2 ** (decimals + 1)) && decimals <= 100) {
    return value.toFixed(decimals);
  }
  const digits = roundScaled(Math.abs(value), decimals)
    .toString()
    .padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  return `${signOf(value)}${digits.slice(0, point)}${decimals === 0 ? "" : `.${digits.slice(point)}`}`;
}

/** One digit, so many decimals and an exponent of at least two digits, as Go's `%.2e`. */
export function formatExponent(value: number, decimals: number): string {
  const { digits, exponent } = significant(value, decimals + 1);
  const fraction = decimals === 0 ? "" : `.${digits.slice(1)}`;
  const power = String(Math.abs(exponent)).padStart(2, "0");
  return `${signOf(value)}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${power}`;
}

/** So many significant digits without zeros behind them, as Go's `%.3g`: whichever form is shorter. */
export function formatGeneral(value: number, precision: number): string {
  const count = Math.max(precision, 1);
  const { digits, exponent } = significant(value, count);
  const kept = digits.replace(/0+$/, "").length;
  // As many decimals as there are digits that count; a whole number has its zeros.
  if (exponent < -4 || exponent >= Math.max(count, 1)) {
    return formatExponent(value, Math.max(kept - 1, 0));
  }
  return formatFixed(value, Math.max(kept - 1 - exponent, 0));
}

/** The first digits of a value, rounded, and the power of ten of the first one. */
function significant(value: number, count: number): { digits: string; exponent: number } {
  if (value === 0) return { digits: "0".repeat(count), exponent: 0 };
  const magnitude = Math.abs(value);
  // The shortest digits may be those of the next power of ten.
  for (let exponent = Number(magnitude.toExponential().split("e")[1]) - 1; ; exponent++) {
    const digits = roundScaled(magnitude, count - 1 - exponent).toString();
    if (digits.length <= count) return { digits: digits.padEnd(count, "0"), exponent };
  }
}

/** value * 10^decimals as the nearest whole number, halves to even. */
function roundScaled(value: number, decimals: number): bigint {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const word = bits.getBigUint64(0);
  const biased = Number((word >> 52n) & 0x7ffn);
  const mantissa = (word & 0xf_ffff_ffff_ffffn) | (biased === 0 ? 0n : 1n << 52n);
  const power = BigInt((biased === 0 ? 1 : biased) - 1075);
  const ten = 10n ** BigInt(Math.abs(decimals));
  const above = mantissa * (power > 0n ? 1n << power : 1n) * (decimals > 0 ? ten : 1n);
  const below = (power < 0n ? 1n << -power : 1n) * (decimals < 0 ? ten : 1n);
  const whole = above / below;
  const twice = (above % below) * 2n;
  return twice > below || (twice === below && whole % 2n === 1n) ? whole + 1n : whole;
}

function signOf(value: number): string {
  return value < 0 || Object.is(value, -0) ? "-" : "";
}
