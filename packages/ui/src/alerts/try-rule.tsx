import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { isAbort } from "../api/client.js";
import { fetchRange } from "../api/lines.js";
import type { MetricChartProps } from "../chart/metric-chart.js";
import { type Drawn, drawnSeries } from "../chart/series.js";
import { loadPart } from "../parts/lazy.js";
import { theme, zone } from "../state/explore.js";
import { presets, resolveRange, stepFor } from "../state/range.js";

/** What a rule would have said over a past range: an alert fires where its expression has a value. */
export function TryRule({ query }: { readonly query: string }) {
  const back = useSignal<string>("6h");
  const drawn = useSignal<Drawn | undefined>(undefined);
  const problem = useSignal("");
  const chart = useSignal<ComponentType<MetricChartProps> | undefined>(undefined);
  useEffect(() => {
    void loadPart(() => import("../chart/metric-chart.js")).then(
      (found) => (chart.value = found.default),
    );
  }, []);
  useEffect(() => {
    const asked = new AbortController();
    const range = resolveRange({ from: `now-${back.value}`, to: "now" }, Date.now());
    const params = {
      query,
      start: String(range.fromNs),
      end: String(range.toNs),
      step: stepFor(range, 240),
    };
    fetchRange(params, asked.signal).then(
      ({ series }) => {
        drawn.value = drawnSeries(series, theme.value);
        problem.value = "";
      },
      (error: unknown) => {
        if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
      },
    );
    return () => asked.abort();
  }, [query, back.value]);
  const Chart = chart.value;
  const found = drawn.value;
  const points = found?.series.reduce(
    (sum, { values }) => sum + values.filter((value) => value !== null).length,
    0,
  );
  return (
    <div>
      <select
        class="field"
        aria-label="How far back"
        onChange={(event) => (back.value = event.currentTarget.value)}
      >
        {presets.map((preset) => (
          <option value={preset} key={preset} selected={preset === back.value}>
            last {preset}
          </option>
        ))}
      </select>
      {problem.value !== "" && <p class="bad">{problem.value}</p>}
      {found !== undefined && (
        <p role="status">
          {found.series.length === 0
            ? "It would not have fired."
            : `It had a value for ${found.series.length} series at ${points} points: the parts that are drawn.`}
        </p>
      )}
      {found !== undefined && found.series.length > 0 && Chart !== undefined && (
        <div class="metric">
          <Chart
            drawn={found}
            shown={found.series}
            mode="lines"
            zone={zone.value}
            theme={theme.value}
            onZoom={() => undefined}
            onNear={() => undefined}
          />
        </div>
      )}
    </div>
  );
}
