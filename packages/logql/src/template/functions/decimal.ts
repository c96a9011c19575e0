/** A decimal number: digits / 10^scale. */
export interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const divisionScale = 16;

/** The decimal that the shortest text of a float stands for. */
export function toDecimal(value: number): Decimal {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  const [whole, fraction = ""] = mantissa.split(".") as [string, string?];
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction);
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 };
}

export function toFloat({ digits, scale }: Decimal): number {
  return Number(`${digits}e-${scale}`);
}

export function addDecimal(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { digits: rescale(a, scale) + rescale(b, scale), scale };
}

export function subtractDecimal(a: Decimal, b: Decimal): Decimal {
  return addDecimal(a, { digits: -b.digits, scale: b.scale });
}

export function multiplyDecimal(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale };
}

/** The quotient with 16 fraction digits, halves away from zero; undefined for a division by zero. */
export function divideDecimal(a: Decimal, b: Decimal): Decimal | undefined {
  if (b.digits === 0n) return undefined;
  const up = divisionScale + b.scale - a.scale;
  const numerator = up >= 0 ? a.digits * 10n ** BigInt(up) : a.digits;
  const denominator = up >= 0 ? b.digits : b.digits * 10n ** BigInt(-up);
  const quotient = numerator / denominator;
  const rest = numerator % denominator;
  const abs = (value: bigint) => (value < 0n ? -value : value);
  const away = abs(rest) * 2n >= abs(denominator);
  const sign = numerator < 0n !== denominator < 0n ? -1n : 1n;
  return { digits: away ? quotient + sign : quotient, scale: divisionScale };
}

function rescale({ digits, scale }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(to - scale);
}
