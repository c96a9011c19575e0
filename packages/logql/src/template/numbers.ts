import {
  type Parsed,
  parseByteSize,
  parseDurationText,
  parseGoFloat,
  secondsOf,
} from "../go/numbers.js";
import { type TemplateFunction, TemplateRunError, type Value } from "./value.js";

const ints = (takes: string, call: (values: readonly bigint[]) => bigint): TemplateFunction => ({
  takes,
  call: (args) => BigInt.asIntN(64, call(args.map(toInt))),
});
const floats = (takes: string, call: (values: readonly number[]) => number): TemplateFunction => ({
  takes,
  call: (args) => call(args.map(toNumber)),
});
const decimals = (call: (a: Decimal, b: Decimal) => Decimal): TemplateFunction => ({
  takes: "vv*",
  call: (args) => {
    const [first = 0, ...rest] = args.map(toNumber);
    if (![first, ...rest].every(Number.isFinite)) {
      throw new TemplateRunError("cannot create a decimal from NaN or an infinity");
    }
    return toFloat(rest.map(toDecimal).reduce(call, toDecimal(first)));
  },
});
const seconds: TemplateFunction = {
  takes: "s",
  call: (args) => secondsOf(resultOf(parseDurationText(args[0] as string))),
};

export const numberFunctions: Readonly<Record<string, TemplateFunction>> = {
  int: { takes: "v", call: (args) => toInt(args[0] as Value) },
  float64: { takes: "v", call: (args) => toNumber(args[0] as Value) },
  add: ints("v*", (values) => values.reduce((sum, value) => sum + value, 0n)),
  sub: ints("vv", ([a = 0n, b = 0n]) => a - b),
  mul: ints("vv*", (values) => values.reduce((product, value) => product * value, 1n)),
  div: ints("vv", ([a = 0n, b = 0n]) => a / divisor(b)),
  mod: ints("vv", ([a = 0n, b = 0n]) => a % divisor(b)),
  max: ints("vv*", (values) => values.reduce(larger)),
  min: ints("vv*", (values) => values.reduce(smaller)),
  addf: { ...decimals(addDecimal), takes: "v*" },
  subf: decimals(subtractDecimal),
  mulf: decimals(multiplyDecimal),
  divf: decimals((a, b) => {
    const quotient = divideDecimal(a, b);
    if (quotient === undefined) throw new TemplateRunError("decimal division by 0");
    return quotient;
  }),
  maxf: floats("vv*", (values) => Math.max(...values)),
  minf: floats("vv*", (values) => Math.min(...values)),
  ceil: floats("v", ([value = 0]) => Math.ceil(value)),
  floor: floats("v", ([value = 0]) => Math.floor(value)),
  round: {
    takes: "vif?",
    call: ([value, places, on]) =>
      round(toNumber(value as Value), Number(places), on as number | undefined),
  },
  bytes: { takes: "s", call: (args) => resultOf(parseByteSize(args[0] as string)) },
  duration: seconds,
  duration_seconds: seconds,
};

function larger(a: bigint, b: bigint): bigint {
  if (b > a) return b;
  return a;
}

function smaller(a: bigint, b: bigint): bigint {
  if (b < a) return b;
  return a;
}

function divisor(value: bigint): bigint {
  if (value === 0n) throw new TemplateRunError("runtime error: integer divide by zero");
  return value;
}

function resultOf(parsed: Parsed<number>): number {
  if ("error" in parsed) throw new TemplateRunError(parsed.error);
  return parsed.value;
}

/** The fraction decides: at `on` (default .5) and above it goes up, a negative fraction always goes down. */
function round(value: number, places: number, on = 0.5): number {
  const power = 10 ** places;
  const digit = power * value;
  const fraction = digit - Math.trunc(digit);
  return (fraction >= on ? Math.ceil(digit) : Math.floor(digit)) / power;
}

/** Any value as int64; what is no number is 0. */
function toInt(value: Value): bigint {
  switch (typeof value) {
    case "bigint":
      return value;
    case "boolean":
      return value ? 1n : 0n;
    case "number":
      return Number.isFinite(value) ? BigInt.asIntN(64, BigInt(Math.trunc(value))) : 0n;
    case "string":
      return intOfText(value);
    default:
      return 0n;
  }
}

function intOfText(value: string): bigint {
  // What stands behind a decimal point is cut off.
  const whole = /^([+-]?\d*)\.\d*$/.exec(value)?.[1] ?? value;
  const m = /^([+-]?)(\d[\d_]*|0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+)$/.exec(whole);
  // more digits than an int64 can have in any base
  if (m === null || whole.length > 80) return 0n;
  const digits = (m[2] as string).replaceAll("_", "");
  try {
    const parsed = BigInt(/^0\d/.test(digits) ? `0o${digits.slice(1)}` : digits);
    const signed = m[1] === "-" ? -parsed : parsed;
    return BigInt.asIntN(64, signed) === signed ? signed : 0n;
  } catch {
    return 0n;
  }
}

/** Any value as float64; what is no number is 0. */
function toNumber(value: Value): number {
  switch (typeof value) {
    case "number":
      return value;
    case "bigint":
      return Number(value);
    case "boolean":
      return value ? 1 : 0;
    case "string": {
      const parsed = parseGoFloat(value);
      return "error" in parsed ? 0 : parsed.value;
    }
    default:
      return 0;
  }
}

/** A decimal number: digits / 10^scale. */
interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const divisionScale = 16;

/** The decimal that the shortest text of a float stands for. */
function toDecimal(value: number): Decimal {
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  const [whole, fraction = ""] = mantissa.split(".") as [string, string?];
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction);
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 };
}

function toFloat({ digits, scale }: Decimal): number {
  return Number(`${digits}e-${scale}`);
}

function addDecimal(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { digits: rescale(a, scale) + rescale(b, scale), scale };
}

function subtractDecimal(a: Decimal, b: Decimal): Decimal {
  return addDecimal(a, { digits: -b.digits, scale: b.scale });
}

function multiplyDecimal(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale };
}

/** The quotient with 16 fraction digits, halves away from zero; undefined for a division by zero. */
function divideDecimal(a: Decimal, b: Decimal): Decimal | undefined {
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
