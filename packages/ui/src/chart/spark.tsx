import { useEffect, useRef } from "preact/hooks";
import type { Span } from "../api/fields.js";
import type { Pattern } from "../api/patterns.js";

const slots = 44;
const size = { width: 132, height: 26 };

/** The lines of a pattern over time, in the colour of its level. */
export function Spark({ pattern, span }: { readonly pattern: Pattern; readonly span: Span }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (canvas.current === null || pen === null || pen === undefined) return;
    const density = devicePixelRatio || 1;
    canvas.current.width = size.width * density;
    canvas.current.height = size.height * density;
    pen.scale(density, density);
    const name = pattern.level === "critical" ? "--critical" : `--bar-${pattern.level}`;
    pen.fillStyle = getComputedStyle(canvas.current).getPropertyValue(name);
    const sums = trend(pattern, span);
    const most = Math.max(...sums, 1);
    for (const [at, sum] of sums.entries()) {
      if (sum === 0) continue;
      const tall = Math.max(1, (sum / most) * (size.height - 2));
      pen.fillRect(at * 3, size.height - tall, 2, tall);
    }
  }, [pattern, span.startNs, span.endNs]);
  return <canvas class="spark" ref={canvas} role="img" aria-label="Lines over time" />;
}

/** Lines by equal parts of the range. */
export function trend({ samples }: Pattern, span: Span): number[] {
  const sums = new Array<number>(slots).fill(0);
  const [from, to] = [Number(span.startNs) / 1e9, Number(span.endNs) / 1e9];
  for (const [at, count] of samples) {
    const slot = Math.min(slots - 1, Math.max(0, Math.floor(((at - from) / (to - from)) * slots)));
    sums[slot] = (sums[slot] ?? 0) + count;
  }
  return sums;
}
