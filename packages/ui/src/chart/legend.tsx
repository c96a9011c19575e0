import { useSignal } from "@preact/signals";
import { formatValue } from "../parts/format.js";
import type { Drawn, DrawnSeries } from "./series.js";

interface LegendProps {
  readonly drawn: Drawn;
  /** Keys of the series that are drawn; none means all. */
  readonly chosen: ReadonlySet<string>;
  readonly near: string | undefined;
  readonly onChoose: (keys: ReadonlySet<string>) => void;
}

const columns = ["last", "mean", "max"] as const;
type Column = (typeof columns)[number];

/** The series as a table. A click shows one alone, with Ctrl several. */
export function SeriesLegend({ drawn, chosen, near, onChoose }: LegendProps) {
  const order = useSignal<Column | "name">("mean");
  const rows = [...drawn.series].sort((a, b) =>
    order.value === "name" ? a.key.localeCompare(b.key) : b[order.value] - a[order.value],
  );
  const choose = (key: string, several: boolean) => {
    if (several) {
      const next = new Set(chosen);
      if (!next.delete(key)) next.add(key);
      onChoose(next);
    } else onChoose(chosen.size === 1 && chosen.has(key) ? new Set() : new Set([key]));
  };
  const head = (column: Column | "name", label: string) => (
    <th
      class={column === "name" ? "" : "num"}
      aria-sort={order.value === column ? "descending" : "none"}
    >
      <button type="button" onClick={() => (order.value = column)}>
        {label}
        {order.value === column ? " ▾" : ""}
      </button>
    </th>
  );
  return (
    <div class="names">
      <table class="plain">
        <thead>
          <tr>
            {head("name", "series")}
            {columns.map((column) => head(column, column))}
          </tr>
        </thead>
        <tbody>
          {rows.map((series) => (
            <tr
              key={series.key}
              class={`${chosen.size > 0 && !chosen.has(series.key) ? "off" : ""} ${near === series.key ? "at" : ""}`}
              onClick={(event) => choose(series.key, event.ctrlKey || event.metaKey)}
            >
              <td>
                <button class="tool" type="button" aria-pressed={chosen.has(series.key)}>
                  <i style={{ background: series.color }} />
                  <SeriesName series={series} />
                </button>
              </td>
              {columns.map((column) => (
                <td class="num" key={column}>
                  {formatValue(series[column])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {drawn.left > 0 && <p class="note-row">{drawn.left} smaller series are not drawn</p>}
    </div>
  );
}

export function SeriesName({ series }: { readonly series: Pick<DrawnSeries, "name"> }) {
  if (series.name.length === 0) return <span>all</span>;
  return (
    <span>
      {series.name.map(([name, value], at) => (
        <span key={name}>
          {at > 0 && "  "}
          <span class="k">{name}=</span>
          {value}
        </span>
      ))}
    </span>
  );
}
