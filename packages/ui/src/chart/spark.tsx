import { useEffect, useRef } from "preact/hooks";
import type { Span } from "../api/fields.js";
import type { Pattern } from "../api/patterns.js";

const slots = 44;
const size = { width: 132, height: 26 };

/** The lines of a pattern over time, in the colour of its level. */
export function Spark(props: {
  readonly pattern: Pattern;
  readonly span: Span;
  /** Parts of the range; as many as there are samples, where they are that few. */
  readonly parts?: number;
}) {
  const { pattern, span, parts = slots } = props;
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
    const sums = trend(pattern, span, parts);
    const wide = size.width / parts;
    const most = Math.max(...sums, 1);
    for (const [at, sum] of sums.entries()) {
      if (sum === 0) continue;
      const tall = Math.max(1, (sum / most) * (size.height - 2));
      pen.fillRect(at * wide, size.height - tall, Math.max(1, wide - 1), tall);
    }
  }, [pattern, span.startNs, span.endNs, parts]);
  return <canvas class="spark" ref={canvas} role="img" aria-label="Lines over time" />;
}

/** Lines by equal parts of the range. */
export function trend({ samples }: Pattern, span: Span, parts = slots): number[] {
  const sums = new Array<number>(parts).fill(0);
  const [from, to] = [Number(span.startNs) / 1e9, Number(span.endNs) / 1e9];
  for (const [at, count] of samples) {
    const slot = Math.min(parts - 1, Math.max(0, Math.floor(((at - from) / (to - from)) * parts)));
    sums[slot] = (sums[slot] ?? 0) + count;
  }
  return sums;
}
