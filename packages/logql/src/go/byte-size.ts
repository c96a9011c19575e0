import { type Parsed, parseGoFloat } from "./float.js";

const scale = (letter: string): number => 1 + "kmgtpe".indexOf(letter);

/**
 * A humanised size: `10KB` = 10,000, `1.5KiB` = 1536, `512`, `1,000 MB`; units of 1000, with an i of 1024, any case.
 * Value in whole bytes.
 */
export function parseByteSize(text: string): Parsed<number> {
  const digits = /^[\p{Nd}.,]*/u.exec(text)?.[0] ?? "";
  const number = parseGoFloat(digits.replaceAll(",", ""));
  if ("error" in number) return number;
  const unit = text.slice(digits.length).trim().toLowerCase();
  const m = /^(?:b|([kmgtpe])(i?)b?)?$/.exec(unit);
  if (m === null) return { error: `unhandled size name: ${unit}` };
  const factor = m[1] === undefined ? 1 : (m[2] === "i" ? 1024 : 1000) ** scale(m[1]);
  const value = number.value * factor;
  if (value >= 2 ** 64) return { error: `too large: ${text}` };
  return { value: Math.trunc(value) };
}
