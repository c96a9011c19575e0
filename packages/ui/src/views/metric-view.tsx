import { useComputed, useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { answer } from "../answer/ask.js";
import { zoom } from "../answer/clicks.js";
import { runQuery } from "../answer/run.js";
import { SeriesLegend, SeriesName } from "../chart/legend.js";
import type { ChartMode, MetricChartProps } from "../chart/metric-chart.js";
import { csvOf, drawnSeries } from "../chart/series.js";
import { saveFile } from "../parts/file.js";
import { formatValue } from "../parts/format.js";
import { Icon } from "../parts/icon.js";
import { loadPart } from "../parts/lazy.js";
import { unitOf } from "../query/derive.js";
import { navigate, route, theme, zone } from "../state/explore.js";
import { formatTime } from "../state/range.js";
import { InstantTable } from "./instant-table.js";

type Mode = ChartMode | "table" | "instant";
const modes: readonly (readonly [Mode, string, string])[] = [
  ["lines", "Lines", "A line for each series"],
  ["bars", "Bars", "A bar for each value"],
  ["stacked", "Stacked", "Series on top of each other"],
  ["table", "Table", "The values at each time"],
  ["instant", "Instant", "The values at the end of the range"],
];

/** The answer of a metric query: a chart with its legend, or a table of its values. */
export default function MetricView() {
  const chartMode = useSignal<ChartMode | "table">("lines");
  const mode: Mode = route.value.view === "instant" ? "instant" : chartMode.value;
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
  const choose = (name: Mode) => {
    const wasInstant = route.peek().view === "instant";
    if (name !== "instant") chartMode.value = name;
    if (wasInstant === (name === "instant")) return;
    navigate({ view: name === "instant" ? "instant" : "lines" });
    runQuery("replace");
  };
  const instant = answer.value?.instant;
  const empty = drawn.value.series.length === 0;
  const isOverTime = !empty && instant === undefined;
  return (
    <div class="metric">
      <div class="tools-row" role="toolbar" aria-label="Chart">
        <span class="dim grow not-phone">
          {unitOf(answer.value?.expr)}
          {metric.series.length} series, {instant ? "at the end" : `step ${metric.step} s`}
        </span>
        <div class="views">
          {modes.map(([name, label, says]) => (
            <button
              key={name}
              class={`tool${mode === name ? " on" : ""}`}
              type="button"
              title={says}
              aria-pressed={mode === name}
              onClick={() => choose(name)}
            >
              {label}
            </button>
          ))}
        </div>
        <button
          class="tool"
          type="button"
          title="Save the values as CSV"
          aria-label="Save the values as CSV"
          onClick={() => saveFile("skald-values.csv", csvOf(metric.series))}
        >
          <Icon name="download" />
        </button>
      </div>
      {empty && (
        <p class="nothing">No series {instant ? "at the end of this range" : "in this range"}.</p>
      )}
      {instant !== undefined && !empty && <InstantTable series={instant} />}
      {isOverTime && mode === "table" && <ValueTable {...{ drawn: drawn.value }} />}
      {isOverTime && mode !== "table" && mode !== "instant" && Chart !== undefined && (
        <Chart
          drawn={drawn.value}
          shown={shown.value}
          mode={mode}
          zone={zone.value}
          theme={theme.value}
          onZoom={zoom}
          onNear={(key) => (near.value = key)}
        />
      )}
      {isOverTime && mode !== "table" && (
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
