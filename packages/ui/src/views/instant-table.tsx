import type { Series } from "../api/lines.js";
import { SeriesName } from "../chart/legend.js";
import { formatValue, formatWhole } from "../parts/format.js";

const rowsMax = 200;

/** The values of a query at one time, largest first, each with a bar beside it. */
export function InstantTable({ series }: { readonly series: readonly Series[] }) {
  const rows = series
    .map(({ labels, points }) => ({ name: Object.entries(labels), value: points[0]?.[1] ?? NaN }))
    .sort(
      (a, b) => b.value - a.value || Number(Number.isNaN(a.value)) - Number(Number.isNaN(b.value)),
    );
  const finite = rows.map(({ value }) => Math.abs(value)).filter(Number.isFinite);
  const most = Math.max(0, ...finite);
  const left = rows.length - rowsMax;
  return (
    <div class="instant" tabIndex={0} role="region" aria-label="Values">
      <table class="plain">
        <thead>
          <tr>
            <th>series</th>
            <th class="num">value</th>
            <th>
              <span class="hidden">size</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, rowsMax).map(({ name, value }) => (
            <tr key={JSON.stringify(name)}>
              <td>
                <SeriesName series={{ name }} />
              </td>
              <td class="num">{formatValue(value)}</td>
              <td>
                <span class="share wide">
                  <i style={{ width: `${most > 0 ? (Math.abs(value) / most) * 100 : 0}%` }} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && <p class="note-row">{formatWhole(left)} smaller values are not shown</p>}
    </div>
  );
}
