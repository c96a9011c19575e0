/** Round numbers for an axis from 0: at most `count` of them above 0. */
export function ticksFor(max: number, count: number): number[] {
  if (max <= 0) return [0, 1];
  const rough = max / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  const whole = max >= 2 ? Math.max(1, step) : step;
  const ticks = [0];
  while (ticks.at(-1)! < max) ticks.push(ticks.at(-1)! + whole);
  return ticks;
}

const minute = 60_000;
const spans = [
  ...[1000, 2000, 5000, 10_000, 15_000, 30_000],
  ...[1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map(
    (one) => one * minute,
  ),
];

/** Times for an axis: whole minutes, hours or days. ms. */
export function timeTicks(
  fromMs: number,
  toMs: number,
  count: number,
): { at: number[]; spanMs: number } {
  const spanMs = spans.find((span) => (toMs - fromMs) / span <= count) ?? spans.at(-1)!;
  const at: number[] = [];
  for (let one = Math.ceil(fromMs / spanMs) * spanMs; one < toMs; one += spanMs) at.push(one);
  return { at, spanMs };
}
