/** Go's shortest form: `7`, `0.25`, `1e+06`; with an exponent below 1e-4 and from 1e6 on. */
export function formatShortest(value: number): string {
  const special = formatSpecial(value);
  if (special !== undefined) return special;
  const { sign, digits, exponent } = decimal(value);
  if (exponent >= -4 && exponent < 6) return formatPlain(value);
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
  const power = Math.abs(exponent).toString().padStart(2, "0");
  return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${power}`;
}

/** The shortest digits that read back to the same number, without an exponent: `1000000`, `0.000001`. */
export function formatPlain(value: number): string {
  const special = formatSpecial(value);
  if (special !== undefined) return special;
  const { sign, digits, exponent } = decimal(value);
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  if (digits.length <= exponent + 1) return sign + digits.padEnd(exponent + 1, "0");
  return `${sign}${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

/** Six decimals, as in `vector(1.000000)`; more where six would change the value. */
export function formatSixDecimals(value: number): string {
  const plain = formatPlain(value);
  if (!Number.isFinite(value)) return plain;
  const [whole, fraction = ""] = plain.split(".");
  return `${whole}.${fraction.padEnd(6, "0")}`;
}

/** `1.0kB`, `20MB`: powers of 1000 with one decimal below ten; plain bytes where that would change the value. */
export function formatBytes(bytes: number): string {
  const exact = `${formatPlain(bytes)}B`;
  if (bytes < 1000) return exact;
  let unit = 0;
  let scale = 1;
  while (unit < sizeUnits.length - 1 && bytes >= scale * 1000) {
    scale *= 1000;
    unit++;
  }
  const tenths = Math.floor((bytes / scale) * 10 + 0.5);
  const shown = tenths < 100 ? (tenths / 10).toFixed(1) : (tenths / 10).toFixed(0);
  const same = Math.trunc(Number(shown) * scale) === bytes;
  return same ? `${shown}${sizeUnits[unit]}` : exact;
}

const sizeUnits = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

/** What the grammar can only say as an operation that the parser folds. */
function formatSpecial(value: number): string | undefined {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  if (Number.isNaN(value)) return "(0 / 0)";
  if (value === Number.POSITIVE_INFINITY) return "(10 ^ 309)";
  return value === Number.NEGATIVE_INFINITY ? "(-10 ^ 309)" : undefined;
}

/** value = sign 0.digits * 10^(exponent + 1), with the fewest digits. */
function decimal(value: number): { sign: string; digits: string; exponent: number } {
  const [mantissa = "", exponent = ""] = Math.abs(value).toExponential().split("e");
  return {
    sign: value < 0 ? "-" : "",
    digits: mantissa.replace(".", ""),
    exponent: Number(exponent),
  };
}

/**
 * True for an expression that only asks for words: literals joined by `|`, grouped, with `.*` or `.+` around them.
 * These are printed in double quotes behind a pipe, all others in back quotes.
 */
export function isSimpleRegex(regex: string): boolean {
  return hasOnlyWords(regex) && !hasNeighbouringLetters(regex);
}

function hasOnlyWords(regex: string): boolean {
  const rest = regex
    .replace(/^\(\?i\)/, "")
    .replaceAll(/\\[^\w\s]/g, "x")
    .replaceAll(/\.[*+]/g, "");
  return !/[\\.[\]{}*+?^$]/.test(rest.replaceAll("(?:", "("));
}

/** `a|b` reads as the class `[ab]`. */
function hasNeighbouringLetters(regex: string): boolean {
  return /(?:^|[|(])[^|()\\.]\|[^|()\\.](?:$|[|)])/u.test(regex);
}
