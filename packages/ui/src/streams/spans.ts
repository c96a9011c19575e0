import { formatCount } from "../parts/format.js";
import type { Range } from "../state/range.js";

/** `+12 %` against the range before; `new` where there was nothing. */
export function growthText(now: number, before: number): string {
  if (before === 0) return now === 0 ? "" : "new";
  const percent = Math.round(((now - before) / before) * 100);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${formatCount(Math.abs(percent))} %`;
}

/** The range as the API wants it, and the one of the same length before it. */
export function spansOf({ fromNs, toNs }: Range) {
  const earlier = fromNs - (toNs - fromNs);
  return {
    now: { startNs: String(fromNs), endNs: String(toNs) },
    before: { startNs: String(earlier), endNs: String(fromNs) },
  };
}
