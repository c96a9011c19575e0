import { route } from "../state/explore.js";
import type { RangeText } from "../state/range.js";
import { setRange } from "./run.js";

const before: RangeText[] = [];
const keptMax = 50;

/** Narrows the range to a part of it; `zoomOut` goes back. */
export function zoom(fromMs: number, toMs: number): void {
  const { from, to } = route.peek();
  before.push({ from, to });
  if (before.length > keptMax) before.shift();
  const ns = (ms: number) => String(BigInt(Math.round(ms)) * 1_000_000n);
  setRange({ from: ns(fromMs), to: ns(toMs) });
}

export function zoomOut(): void {
  const last = before.pop();
  if (last !== undefined) setRange(last);
}
