import { useComputed, useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { zoom } from "../answer/clicks.js";
import { answer } from "../answer/run.js";
import { SeriesLegend, SeriesName } from "../chart/legend.js";
import type { ChartMode, MetricChartProps } from "../chart/metric-chart.js";
import { drawnSeries } from "../chart/series.js";
import { formatValue } from "../parts/format.js";
import { loadPart } from "../parts/lazy.js";
import { theme, zone } from "../state/explore.js";
import { formatTime } from "../state/range.js";

const modes: readonly (readonly [ChartMode | "table", string])[] = [
  ["lines", "Lines"],
  ["bars", "Bars"],
  ["stacked", "Stacked"],
  ["table", "Table"],
];

/** The answer of a metric query: a chart with its legend, or a table of its values. */
export default function MetricView() {
  const mode = useSignal<ChartMode | "table">("lines");
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const near = useSignal<string | undefined>(undefined);
  const chart = useSignal<ComponentType<MetricChartProps> | undefined>(undefined);
  const drawn = useComputed(() => drawnSeries(answer.value?.metric?.series ?? [], theme.value));
  const shown = useComputed(() => {
    const { series } = drawn.value;
    return chosen.value.size === 0 ? series : series.filter(({ key }) => chosen.value.has(key));
  });
  useEffect(() => {
    void loadPart(() => import("../chart/metric-chart.js")).then(
      (found) => (chart.value = found.default),
    );
  }, []);
  const Chart = chart.value;
  const metric = answer.value?.metric;
  if (metric === undefined) return null;
  const empty = drawn.value.series.length === 0;
  return (
    <div class="metric">
      <div class="tools-row" role="toolbar" aria-label="Chart">
        <span class="dim grow">
          {drawn.value.series.length + drawn.value.left} series, step {metric.step} s
        </span>
        <div class="views">
          {modes.map(([name, label]) => (
            <button
              key={name}
              class={`tool${mode.value === name ? " on" : ""}`}
              type="button"
              aria-pressed={mode.value === name}
              onClick={() => (mode.value = name)}
            >
              {label}
            </button>
          ))}
        </div>
      </div>
      {empty && <p class="nothing">No series in this range.</p>}
      {!empty && mode.value === "table" && <ValueTable {...{ drawn: drawn.value }} />}
      {!empty && mode.value !== "table" && Chart !== undefined && (
        <Chart
          drawn={drawn.value}
          shown={shown.value}
          mode={mode.value}
          zone={zone.value}
          theme={theme.value}
          onZoom={zoom}
          onNear={(key) => (near.value = key)}
        />
      )}
      {!empty && mode.value !== "table" && (
        <SeriesLegend
          drawn={drawn.value}
          chosen={chosen.value}
          near={near.value}
          onChoose={(keys) => (chosen.value = keys)}
        />
      )}
    </div>
  );
}

const rowsMax = 500;

function ValueTable({ drawn }: { readonly drawn: ReturnType<typeof drawnSeries> }) {
  const first = Math.max(0, drawn.times.length - rowsMax);
  const rows = drawn.times.slice(first).map((at, index) => ({ at, index: first + index }));
  return (
    <div class="grid" tabIndex={0} role="region" aria-label="Values">
      <table>
        <thead>
          <tr>
            <th>time</th>
            {drawn.series.map((series) => (
              <th class="num" key={series.key}>
                <SeriesName series={series} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.reverse().map(({ at, index }) => (
            <tr key={at}>
              <td>{formatTime(BigInt(Math.round(at * 1000)) * 1_000_000n, zone.value, "s")}</td>
              {drawn.series.map(({ key, values }) => (
                <td class="num" key={key}>
                  {values[index] === null || values[index] === undefined
                    ? ""
                    : formatValue(values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
