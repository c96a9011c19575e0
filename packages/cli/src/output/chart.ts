import { styleText } from "node:util";
import { formatTime, type Zone } from "../shell/times.js";
import { printable } from "./cells.js";
import { type LabelSet, labelText } from "./entries.js";

/** A series of a chart. */
export interface Line {
  readonly metric: LabelSet;
  readonly values: readonly (readonly [seconds: number, value: string])[];
}

interface ChartOptions {
  readonly zone: Zone;
  /** The width of the terminal. */
  readonly columns: number;
  readonly isColoured: boolean;
}

const rows = 12;
const seriesMax = 12;
const colours = ["green", "yellow", "cyan", "magenta", "blue", "red"] as const;
/** The bit of each of the 2 x 4 dots of a braille character, by column and row from the top. */
const dots = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;

/** Draws series as lines of braille dots, with an axis of values, one of time, and a legend with the last values. */
export function drawChart(
  series: readonly Line[],
  { zone, columns, isColoured }: ChartOptions,
): string {
  const shown = [...series].sort((a, b) => peakOf(b) - peakOf(a)).slice(0, seriesMax);
  const times = shown.flatMap(({ values }) => values.map(([at]) => at));
  const values = shown.flatMap(numbersOf).filter(Number.isFinite);
  if (values.length === 0) return "no values\n";
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const [low, high] = [Math.min(0, ...values), Math.max(...values)];
  const top = high === low ? low + 1 : high;
  const labels = Array.from({ length: rows }, (_, row) =>
    row % 4 === 0 || row === rows - 1 ? shorten(top - ((top - low) * row) / (rows - 1)) : "",
  );
  const margin = Math.max(...labels.map((label) => label.length));
  const width = Math.max(columns - margin - 3, 20);
  const cells = new Uint8Array(width * rows);
  const owners = new Int16Array(width * rows).fill(-1);
  const x = (at: number) => (to === from ? 0 : ((at - from) / (to - from)) * (width * 2 - 1));
  const y = (value: number) => (1 - (value - low) / (top - low)) * (rows * 4 - 1);
  const dot = (column: number, row: number, owner: number) => {
    const cell = (row >> 2) * width + (column >> 1);
    cells[cell]! |= dots[column & 1]![row & 3]!;
    owners[cell] = owner;
  };
  shown.forEach((line, owner) => {
    drawLine(line, { x, y, dot: (column, row) => dot(column, row, owner) });
  });
  const paint = (owner: number, text: string) =>
    isColoured && owner >= 0
      ? styleText(colours[owner % colours.length]!, text, { validateStream: false })
      : text;
  const body = labels.map((label, row) => {
    const text = Array.from({ length: width }, (_, column) => {
      const cell = row * width + column;
      return cells[cell] === 0
        ? " "
        : paint(owners[cell]!, String.fromCodePoint(0x2800 + cells[cell]!));
    });
    return `${label.padStart(margin)} ┤${text.join("").trimEnd()}`;
  });
  const [left, right] = [from, to].map((at) => clockOf(at, zone)) as [string, string];
  const axis = `${" ".repeat(margin)} └${"─".repeat(width)}`;
  const legend = shown.map((line, owner) => {
    const last = line.values.at(-1)?.[1] ?? "";
    return `${paint(owner, "●")} ${printable(labelText(line.metric))} ${last}`;
  });
  const more = series.length > seriesMax ? [`and ${series.length - seriesMax} more series`] : [];
  const times2 = `${" ".repeat(margin + 2)}${left}${right.padStart(Math.max(width - left.length, right.length + 1))}`;
  return `${[...body, axis, times2, ...legend, ...more].join("\n")}\n`;
}

interface Canvas {
  readonly x: (seconds: number) => number;
  readonly y: (value: number) => number;
  readonly dot: (column: number, row: number) => void;
}

/** Draws a dot for each point, and those between two neighbours. */
function drawLine({ values }: Line, { x, y, dot }: Canvas): void {
  let before: readonly [number, number] | undefined;
  for (const [at, text] of values) {
    const value = numberOf(text);
    if (!Number.isFinite(value)) {
      before = undefined;
      continue;
    }
    const point = [Math.round(x(at)), Math.round(y(value))] as const;
    const [fromX, fromY] = before ?? point;
    const steps = Math.max(Math.abs(point[0] - fromX), Math.abs(point[1] - fromY), 1);
    for (let step = 0; step <= steps; step++) {
      const part = step / steps;
      dot(
        Math.round(fromX + (point[0] - fromX) * part),
        Math.round(fromY + (point[1] - fromY) * part),
      );
    }
    before = point;
  }
}

function numbersOf({ values }: Line): number[] {
  return values.map(([, value]) => numberOf(value));
}

function peakOf(line: Line): number {
  return Math.max(...numbersOf(line).filter(Number.isFinite), Number.NEGATIVE_INFINITY);
}

/** A value as the API writes it: `+Inf` is none of JavaScript's. */
export function numberOf(text: string): number {
  return text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text);
}

function clockOf(seconds: number, zone: Zone): string {
  return formatTime(BigInt(Math.round(seconds)) * 1_000_000_000n, zone)
    .slice(0, 19)
    .replace("T", " ");
}

/** `1.2k`, `3.4M` */
function shorten(value: number): string {
  const units = ["", "k", "M", "G", "T", "P"];
  let size = Math.abs(value);
  let unit = 0;
  for (; size >= 1000 && unit < units.length - 1; unit++) size /= 1000;
  const digits = size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? "-" : ""}${size.toFixed(digits)}${units[unit]}`;
}
