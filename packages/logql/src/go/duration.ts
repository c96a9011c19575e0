import { goDurationUnits } from "@skald/model";
import type { Parsed } from "./float.js";

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
    if (unit === "") return { error: `time: missing unit in duration ${quoteBytes(text)}` };
    const scale = goDurationUnits.get(unit);
    if (scale === undefined) {
      return { error: `time: unknown unit ${quoteBytes(unit)} in duration ${quoteBytes(text)}` };
    }
    rest = rest.slice(unit.length);
    total += Number(whole === "" ? 0 : whole) * scale;
    if (fraction !== "") total += Math.trunc(Number(`0.${fraction}`) * scale);
    if (total >= maxNs) return invalid(text);
  }
  return { value: sign * total };
}

function invalid(text: string): { error: string } {
  return { error: `time: invalid duration ${quoteBytes(text)}` };
}

/** Go's quotation of a duration in an error: everything beyond ASCII byte by byte. */
function quoteBytes(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const shown = Array.from(bytes, (byte) => {
    if (byte < 0x20 || byte >= 0x80) return `\\x${byte.toString(16).padStart(2, "0")}`;
    const char = String.fromCharCode(byte);
    return char === '"' || char === "\\" ? `\\${char}` : char;
  });
  return `"${shown.join("")}"`;
}

/** A duration in ns as seconds, rounded as Go's Duration.Seconds: whole seconds and the rest are added. */
export function secondsOf(ns: number): number {
  const whole = Math.trunc(ns / 1e9);
  return whole + (ns - whole * 1e9) / 1e9;
}
