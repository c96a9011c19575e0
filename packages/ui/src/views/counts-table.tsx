import { histogram } from "../answer/ask.js";
import { zoom } from "../answer/clicks.js";
import { Dialog } from "../parts/dialog.js";
import { formatWhole } from "../parts/format.js";
import { zone } from "../state/explore.js";
import { formatTime } from "../state/range.js";

/** The chart of lines over time as a table, for those who do not see it or use no mouse. A time zooms into its part. */
export default function CountsTable({ onClose }: { readonly onClose: () => void }) {
  const data = histogram.value;
  const rows = data === undefined ? [] : [...data.counts];
  const sumAt = (at: number) => rows.reduce((sum, [, counts]) => sum + (counts[at] ?? 0), 0);
  const parts = Array.from({ length: data?.buckets ?? 0 }, (_, at) => at);
  const shown = parts.filter((at) => sumAt(at) > 0);
  return (
    <Dialog title="Lines over time" onClose={onClose}>
      <p class="dim">
        {data === undefined
          ? "No counts yet."
          : `${formatWhole(data.total)} lines, by parts of ${data.stepMs / 1000} s. Parts without lines are left out.`}
      </p>
      {data !== undefined && (
        <table class="plain">
          <thead>
            <tr>
              <th>from</th>
              {rows.map(([level]) => (
                <th class="num" key={level}>
                  {level}
                </th>
              ))}
              <th class="num">all</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((at) => {
              const fromMs = data.fromMs + at * data.stepMs;
              const time = formatTime(BigInt(Math.round(fromMs)) * 1_000_000n, zone.value, "s");
              return (
                <tr key={at}>
                  <td>
                    <button
                      class="link"
                      type="button"
                      title="Look at this part"
                      onClick={() => {
                        onClose();
                        zoom(fromMs, fromMs + data.stepMs);
                      }}
                    >
                      {time}
                    </button>
                  </td>
                  {rows.map(([level, counts]) => (
                    <td class="num" key={level}>
                      {formatWhole(counts[at] ?? 0)}
                    </td>
                  ))}
                  <td class="num">{formatWhole(sumAt(at))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}
