import type { Series } from "../api/lines.js";

/** A series as it is drawn: its name, colour, and what its legend says. */
export interface DrawnSeries {
  readonly name: readonly (readonly [string, string])[];
  readonly key: string;
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly last: number;
  readonly mean: number;
  readonly max: number;
}

export interface Drawn {
  /** Seconds. */
  readonly times: readonly number[];
  readonly series: readonly DrawnSeries[];
  /** Series that are left out, because the largest are enough. */
  readonly left: number;
}

const drawnMax = 50;
const colors = [
  ...["#7aa2ff", "#f5b041", "#5fcf9f", "#ff8a7a", "#b99bff", "#4cc9e0", "#ff9bd2", "#c6d65a"],
  ...["#f2a56b", "#8b95a7"],
];
const lightColors = [
  ...["#2458d6", "#b87400", "#0f7a55", "#c62828", "#6b35c9", "#0b7d93", "#b0117a", "#6d7a00"],
  ...["#a8470b", "#667082"],
];

/** The largest series on one grid of times, largest first. */
export function drawnSeries(series: readonly Series[], theme: "dark" | "light"): Drawn {
  const times = [...new Set(series.flatMap(({ points }) => points.map(([at]) => at)))].sort(
    (a, b) => a - b,
  );
  const place = new Map(times.map((at, index) => [at, index]));
  const palette = theme === "dark" ? colors : lightColors;
  const all = series.map(({ labels, points }) => {
    const values = new Array<number | null>(times.length).fill(null);
    let sum = 0;
    let max = Number.NEGATIVE_INFINITY;
    for (const [at, value] of points) {
      values[place.get(at)!] = Number.isFinite(value) ? value : null;
      sum += value;
      max = Math.max(max, value);
    }
    const name = Object.entries(labels);
    const last = points.at(-1)?.[1] ?? Number.NaN;
    return { name, key: JSON.stringify(name), values, last, max, mean: sum / points.length, sum };
  });
  all.sort((a, b) => b.sum - a.sum);
  const shown = all.slice(0, drawnMax);
  return {
    times,
    left: all.length - shown.length,
    series: shown.map(({ sum: _, ...one }, at) => ({
      ...one,
      color: palette[at % palette.length]!,
    })),
  };
}

/** Each series on top of those before it; what is not there counts as nothing. */
export function stacked(series: readonly DrawnSeries[]): (number | null)[][] {
  let below: number[] = [];
  return series.map(({ values }) => {
    below = values.map((value, at) => (below[at] ?? 0) + (value ?? 0));
    return [...below];
  });
}

/** All values of series as CSV: seconds since 1970, the labels, the value. */
export function csvOf(series: readonly Series[]): string {
  const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const rows = series.flatMap(({ labels, points }) => {
    const name = cell(JSON.stringify(labels));
    return points.map(([at, value]) => `${at},${name},${value}`);
  });
  return `time,labels,value\r\n${rows.map((row) => `${row}\r\n`).join("")}`;
}
