import type { Line } from "../api/lines.js";
import type { Pattern } from "../api/patterns.js";

/** Patterns made in the page, where the server mines none. */

const any = "<_>";
const changing = /\d|^[0-9a-f]{8,}$/i;

/** Patterns of lines: words with digits, and quoted ones, are taken for parts that change. */
export function patternsOf(lines: readonly Line[]): Pattern[] {
  const found = new Map<string, { level: Line["level"]; samples: Map<number, number> }>();
  for (const { text, level, ns } of lines) {
    const pattern = patternOf(text.slice(0, 1000));
    let one = found.get(pattern);
    if (one === undefined) {
      one = { level, samples: new Map() };
      found.set(pattern, one);
    }
    const second = Math.floor(Number(ns) / 1e10) * 10;
    one.samples.set(second, (one.samples.get(second) ?? 0) + 1);
  }
  return [...found]
    .map(([pattern, { level, samples }]) => {
      const list = [...samples].sort((a, b) => a[0] - b[0]);
      return {
        pattern,
        level,
        samples: list,
        lines: list.reduce((sum, [, count]) => sum + count, 0),
      };
    })
    .sort((a, b) => b.lines - a.lines);
}

function patternOf(text: string): string {
  const words = text.split(/([\s"'=:,[\](){}/]+)/);
  const out = words.map((word, at) => (at % 2 === 0 && changing.test(word) ? any : word)).join("");
  return out.replace(/(?:<_>[\s:/,.-]*){2,}/g, any);
}

/** Whether a line has a pattern: its fixed parts, in order. */
export function matchesPattern(pattern: string, text: string): boolean {
  const parts = pattern.split(any);
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const found = text.indexOf(part, at);
    if (found < 0 || (index === 0 && found > 0)) return false;
    at = found + part.length;
  }
  return pattern.endsWith(any) || at === text.length;
}
