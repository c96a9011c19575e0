import { goQuote, type Parsed } from "./float.js";

const unitNs: Readonly<Record<string, number | undefined>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};
const maxNs = 2 ** 63;

/**
 * Go's time.ParseDuration: `1h30m`, `-1.5s`, `0`; no days or weeks. Value in ns, exact below 2^53 (104 days); the
 * error is Go's text.
 */
export function parseGoDuration(text: string): Parsed<number> {
  const sign = text[0] === "-" ? -1 : 1;
  let rest = text[0] === "-" || text[0] === "+" ? text.slice(1) : text;
  if (rest === "0") return { value: 0 };
  if (rest === "") return invalid(text);
  let total = 0;
  while (rest !== "") {
    const m = /^(\d*)(?:\.(\d*))?/.exec(rest) as RegExpExecArray;
    const whole = m[1] as string;
    const fraction = m[2] ?? "";
    if (whole === "" && fraction === "") return invalid(text);
    rest = rest.slice(m[0].length);
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? "";
    if (unit === "") return { error: `time: missing unit in duration ${goQuote(text)}` };
    const scale = unitNs[unit];
    if (scale === undefined) {
      return { error: `time: unknown unit ${goQuote(unit)} in duration ${goQuote(text)}` };
    }
    rest = rest.slice(unit.length);
    total += Number(whole === "" ? 0 : whole) * scale;
    if (fraction !== "") total += Math.trunc(Number(`0.${fraction}`) * scale);
    if (total >= maxNs) return invalid(text);
  }
  return { value: sign * total };
}

function invalid(text: string): { error: string } {
  return { error: `time: invalid duration ${goQuote(text)}` };
}
