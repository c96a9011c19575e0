import { useEffect, useRef } from "preact/hooks";
import type { Span } from "../api/fields.js";
import type { Level } from "../api/lines.js";

const slots = 44;
const size = { width: 132, height: 26 };

interface SparkProps {
  /** A bar for each part of the range, the newest last. */
  readonly sums: readonly number[];
  readonly level?: Level;
  readonly label?: string;
}

/** A small chart of bars, in the colour of a level. */
export function Spark({ sums, level = "info", label = "Lines over time" }: SparkProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (canvas.current === null || pen === null || pen === undefined) return;
    const density = devicePixelRatio || 1;
    canvas.current.width = size.width * density;
    canvas.current.height = size.height * density;
    pen.scale(density, density);
    const name = level === "critical" ? "--critical" : `--bar-${level}`;
    pen.fillStyle = getComputedStyle(canvas.current).getPropertyValue(name);
    const wide = size.width / sums.length;
    const most = Math.max(...sums) || 1;
    for (const [at, sum] of sums.entries()) {
      if (sum === 0) continue;
      const tall = Math.max(1, (sum / most) * (size.height - 2));
      pen.fillRect(at * wide, size.height - tall, Math.max(1, wide - 1), tall);
    }
  }, [sums.join(), level]);
  return <canvas class="spark" ref={canvas} role="img" aria-label={label} />;
}

/** Samples of Unix seconds, summed by equal parts of a range. */
export function trend(
  samples: readonly (readonly [number, number])[],
  span: Span,
  parts = slots,
): number[] {
  const sums = new Array<number>(parts).fill(0);
  const [from, to] = [Number(span.startNs) / 1e9, Number(span.endNs) / 1e9];
  for (const [at, count] of samples) {
    const slot = Math.min(parts - 1, Math.max(0, Math.floor(((at - from) / (to - from)) * parts)));
    sums[slot] = (sums[slot] ?? 0) + count;
  }
  return sums;
}
