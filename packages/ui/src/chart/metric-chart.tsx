import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { formatCount } from "../parts/format.js";
import { formatTime, type Zone } from "../state/range.js";
import { type Drawn, type DrawnSeries, stacked } from "./series.js";

export type ChartMode = "lines" | "bars" | "stacked";

export interface MetricChartProps {
  readonly drawn: Drawn;
  readonly shown: readonly DrawnSeries[];
  readonly mode: ChartMode;
  readonly zone: Zone;
  readonly theme: string;
  readonly onZoom: (fromMs: number, toMs: number) => void;
  readonly onNear: (key: string | undefined, at: number | undefined) => void;
}

/** Series over time. A drag zooms, and the nearest series is named while the pointer is over it. */
export default function MetricChart(props: MetricChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const { drawn, shown, mode, zone, theme } = props;
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const plot = makePlot(element, props);
    const observer = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [drawn, shown, mode, zone, theme]);
  const says = `${shown.length} series from ${drawn.times.length} points each`;
  return <div class="plot" ref={host} role="img" aria-label={says} />;
}

function makePlot(element: HTMLElement, props: MetricChartProps): uPlot {
  const { drawn, shown, mode, zone, onZoom, onNear } = props;
  const look = getComputedStyle(element);
  const color = (name: string) => look.getPropertyValue(name).trim();
  const data = mode === "stacked" ? stacked(shown) : shown.map(({ values }) => [...values]);
  const bars = uPlot.paths.bars?.({ size: [0.8, 40] });
  const axis = {
    stroke: color("--ink3"),
    font: "11px Inter, system-ui, sans-serif",
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
  };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: element.clientHeight,
    tzDate: (seconds) =>
      zone === "utc" ? uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000),
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
      focus: { prox: 30 },
    },
    focus: { alpha: 0.4 },
    scales: { y: { range: (_, min, max) => [Math.min(0, min), max <= 0 ? 1 : max * 1.08] } },
    axes: [
      {
        ...axis,
        space: 110,
        values: (_, times) => times.map((at) => shortTime(at, zone, drawn.times)),
      },
      { ...axis, size: 58, values: (_, values) => values.map(formatCount) },
    ],
    series: [
      {},
      ...shown.map(({ key, color: stroke }) => ({
        label: key,
        stroke,
        width: 1.25,
        points: { show: false },
        ...(mode === "bars" && bars !== undefined && { paths: bars, fill: stroke }),
        ...(mode === "stacked" && { fill: `${stroke}66` }),
      })),
    ],
    ...(mode === "stacked" && {
      bands: shown.slice(1).map((_, at) => ({ series: [at + 2, at + 1] as [number, number] })),
    }),
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          onZoom(plot.posToVal(left, "x") * 1000, plot.posToVal(left + width, "x") * 1000);
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      setSeries: [
        (plot, index) =>
          onNear(index === null ? undefined : shown[index - 1]?.key, plot.cursor.idx ?? undefined),
      ],
      setCursor: [(plot) => plot.cursor.idx === null && onNear(undefined, undefined)],
    },
  };
  return new uPlot(options, [[...drawn.times], ...data] as uPlot.AlignedData, element);
}

function shortTime(seconds: number, zone: Zone, times: readonly number[]): string {
  const text = formatTime(BigInt(Math.round(seconds * 1000)) * 1_000_000n, zone, "s");
  const length = (times.at(-1) ?? 0) - (times[0] ?? 0);
  if (length > 2 * 86_400) return text.slice(5, 16);
  return text.slice(11, length < 600 ? 19 : 16);
}
