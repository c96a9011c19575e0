import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Level, levels } from "../api/lines.js";
import { formatCount, formatWhole } from "../parts/format.js";
import { formatTime, type Zone } from "../state/range.js";
import { ticksFor, timeTicks } from "./scale.js";

export interface HistogramData {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly buckets: number;
  readonly counts: ReadonlyMap<Level, Float64Array>;
  readonly total: number;
}

interface HistogramProps {
  /** Undefined while the counts are on their way: what stays takes a click then, too. */
  readonly data: HistogramData | undefined;
  readonly hidden: ReadonlySet<Level>;
  readonly zone: Zone;
  /** The part that the list covers, ms; undefined where it covers nothing. */
  readonly covered: readonly [number, number] | undefined;
  /** Changes when the colours do. */
  readonly theme: string;
  readonly onZoom: (fromMs: number, toMs: number) => void;
  readonly onZoomOut: () => void;
}

const box = { left: 46, right: 12, top: 8, bottom: 20, height: 106 };

/** Lines over time by level, errors on the axis. A drag zooms. */
export function Histogram(props: HistogramProps) {
  const { data, zone, onZoom, onZoomOut } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const over = useSignal(-1);
  const dragFrom = useSignal(-1);
  const width = useSignal(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      width.value = entry?.contentRect.width ?? 0;
    });
    if (canvas.current !== null) observer.observe(canvas.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current !== null && width.value > 0) draw(canvas.current, data, props);
  }, [data, props.hidden, props.covered?.join(), zone, props.theme, width.value]);
  const buckets = data?.buckets ?? 0;
  const bucketAt = (event: PointerEvent) => {
    const area = canvas.current!.getBoundingClientRect();
    const share = (event.clientX - area.left - box.left) / (area.width - box.left - box.right);
    return Math.min(buckets - 1, Math.max(0, Math.floor(share * buckets)));
  };
  const xOf = (bucket: number) =>
    box.left + ((width.value - box.left - box.right) * bucket) / buckets;
  const end = () => {
    const [from, to] = [
      Math.min(dragFrom.value, over.value),
      Math.max(dragFrom.value, over.value) + 1,
    ];
    const dragged = dragFrom.value >= 0 && to - from > 1;
    dragFrom.value = -1;
    if (data !== undefined && dragged)
      onZoom(data.fromMs + from * data.stepMs, data.fromMs + to * data.stepMs);
  };
  return (
    <div class="histogram">
      <canvas
        ref={canvas}
        role={data && "img"}
        aria-label={data && sentence(data, zone)}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          dragFrom.value = over.value = bucketAt(event);
        }}
        onPointerMove={(event) => (over.value = bucketAt(event))}
        onPointerUp={end}
        onPointerLeave={() => {
          if (dragFrom.value < 0) over.value = -1;
        }}
        onDblClick={onZoomOut}
      />
      {data !== undefined && dragFrom.value >= 0 && over.value !== dragFrom.value && (
        <div
          class="brush"
          style={{
            left: `${xOf(Math.min(dragFrom.value, over.value))}px`,
            width: `${xOf(Math.abs(dragFrom.value - over.value) + 1) - box.left}px`,
          }}
        />
      )}
      {data !== undefined && over.value >= 0 && (
        <Tip {...{ data, zone }} bucket={over.value} x={xOf(over.value)} width={width.value} />
      )}
    </div>
  );
}

function Tip(props: { data: HistogramData; zone: Zone; bucket: number; x: number; width: number }) {
  const { data, zone, bucket, x, width } = props;
  const at = BigInt(Math.round(data.fromMs + bucket * data.stepMs)) * 1_000_000n;
  const rows = [...data.counts].filter(([, row]) => (row[bucket] ?? 0) > 0);
  const side = x > width / 2 ? { right: `${width - x + 12}px` } : { left: `${x + 20}px` };
  return (
    <div class="tip" style={{ ...side, top: "4px" }} role="presentation">
      <div class="dim">{formatTime(at, zone, data.stepMs < 1000 ? "ms" : "s")}</div>
      {rows.length === 0 && <div>no lines</div>}
      {rows.map(([level, row]) => (
        <div key={level}>
          <i class={`bg-${level}`} />
          {level}
          <b>{formatWhole(row[bucket] ?? 0)}</b>
        </div>
      ))}
    </div>
  );
}

/** The chart in a sentence, for those who do not see it. */
function sentence(data: HistogramData, zone: Zone): string {
  const sums = Array.from({ length: data.buckets }, (_, at) =>
    [...data.counts.values()].reduce((sum, row) => sum + (row[at] ?? 0), 0),
  );
  const most = sums.indexOf(Math.max(...sums));
  const at = BigInt(Math.round(data.fromMs + most * data.stepMs)) * 1_000_000n;
  const errors = data.counts.get("error")?.reduce((sum, count) => sum + count, 0) ?? 0;
  return `${formatWhole(data.total)} lines, most at ${formatTime(at, zone, "s").slice(11, 16)}, ${formatWhole(errors)} errors`;
}

function draw(
  canvas: HTMLCanvasElement,
  data: HistogramData | undefined,
  { hidden, zone, covered }: HistogramProps,
): void {
  const width = canvas.clientWidth;
  const density = devicePixelRatio || 1;
  canvas.width = width * density;
  canvas.height = box.height * density;
  const pen = canvas.getContext("2d");
  if (pen === null || data === undefined) return;
  pen.scale(density, density);
  const look = getComputedStyle(canvas);
  const color = (name: string) => look.getPropertyValue(name).trim();
  const { buckets } = data;
  const shown = levels.filter((level) => data.counts.has(level) && !hidden.has(level));
  const sumAt = (at: number) =>
    shown.reduce((sum, level) => sum + (data.counts.get(level)![at] ?? 0), 0);
  let most = 0;
  for (let at = 0; at < buckets; at++) most = Math.max(most, sumAt(at));
  const ticks = ticksFor(most, 2);
  const top = ticks.at(-1) ?? 1;
  const height = box.height - box.top - box.bottom;
  const inner = width - box.left - box.right;
  const yOf = (value: number) => box.top + height - (value / top) * height;
  pen.font = "11px Inter, system-ui, sans-serif";
  pen.fillStyle = color("--ink3");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const tick of ticks) {
    pen.fillText(formatCount(tick), box.left - 8, yOf(tick));
    pen.fillRect(box.left, Math.round(yOf(tick)), 0, 0);
  }
  pen.fillStyle = color("--line");
  for (const tick of ticks) pen.fillRect(box.left, Math.round(yOf(tick)), inner, 1);
  const slot = inner / buckets;
  const gap = slot > 4 ? 1 : 0;
  for (let at = 0; at < buckets; at++) {
    let y = box.top + height;
    const x = Math.round(box.left + at * slot);
    const wide = Math.max(1, Math.round(box.left + (at + 1) * slot) - x - gap);
    for (const level of shown) {
      const value = data.counts.get(level)![at] ?? 0;
      if (value === 0) continue;
      const tall = Math.max(1, (value / top) * height);
      pen.fillStyle = color(level === "critical" ? "--critical" : `--bar-${level}`);
      pen.fillRect(x, y - tall, wide, tall);
      y -= tall;
    }
  }
  drawTimes(pen, { data, zone, inner, buckets, ink: color("--ink3") });
  if (covered !== undefined) {
    const span = data.stepMs * buckets;
    const at = (ms: number) =>
      box.left + (Math.min(span, Math.max(0, ms - data.fromMs)) / span) * inner;
    pen.fillStyle = color("--accent");
    const from = at(covered[0]);
    pen.fillRect(
      Math.min(from, width - box.right - 6),
      box.top + height + 1,
      Math.max(6, at(covered[1]) - from),
      2,
    );
  }
}

function drawTimes(
  pen: CanvasRenderingContext2D,
  at: { data: HistogramData; zone: Zone; inner: number; buckets: number; ink: string },
): void {
  const { data, zone, inner, buckets, ink } = at;
  const toMs = data.fromMs + data.stepMs * buckets;
  const { at: times, spanMs } = timeTicks(data.fromMs, toMs, Math.max(2, inner / 105));
  pen.fillStyle = ink;
  pen.textAlign = "center";
  for (const time of times) {
    const x = box.left + ((time - data.fromMs) / (toMs - data.fromMs)) * inner;
    if (x > box.left + inner - 20 || x < box.left + 14) continue;
    const text = formatTime(BigInt(time) * 1_000_000n, zone, "s");
    const shown =
      spanMs >= 86_400_000 ? text.slice(5, 10) : text.slice(11, spanMs < 60_000 ? 19 : 16);
    pen.fillText(shown, x, box.height - 9);
  }
}
