import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchMetrics } from "../api/system.js";
import { Spark } from "../chart/spark.js";
import { formatBytes, formatCount } from "../parts/format.js";

const everyMs = 5000;
const samplesMax = 24;

/** What is shown of the metrics: counters as rates, gauges as they are. Names are without the namespace. */
const shown = [
  [
    "distributor_bytes_received_total",
    "received",
    (value: number) => `${formatBytes(value)}/s`,
    true,
  ],
  ["distributor_lines_received_total", "lines", (value: number) => `${formatCount(value)}/s`, true],
  [
    "request_duration_seconds_count",
    "requests",
    (value: number) => `${formatCount(value)}/s`,
    true,
  ],
  [
    'request_duration_seconds_count{status_code="5',
    "errors of the server",
    (value: number) => `${formatCount(value)}/s`,
    true,
  ],
  ["ingester_memory_streams", "streams in memory", formatCount, false],
  ["ingester_wal_disk_bytes", "write-ahead log", formatBytes, false],
  ["ingester_wal_queued_bytes", "waits for the log", formatBytes, false],
] as const;

interface Sample {
  readonly at: number;
  readonly values: ReadonlyMap<string, number>;
}

/** Rates of the last two minutes, sampled while the screen is open. */
export function Rates() {
  const samples = useSignal<readonly Sample[]>([]);
  const problem = useSignal("");
  useEffect(() => {
    const names = shown.map(([name]) => name);
    const ask = () =>
      fetchMetrics(names).then(
        (values) =>
          (samples.value = [...samples.value, { at: Date.now(), values }].slice(-samplesMax)),
        (error: unknown) =>
          (problem.value = error instanceof Error ? error.message : String(error)),
      );
    void ask();
    const timer = setInterval(ask, everyMs);
    return () => clearInterval(timer);
  }, []);
  const first = samples.value[0];
  const last = samples.value.at(-1);
  if (problem.value !== "") return <p class="dim">{problem.value}</p>;
  return (
    <table class="plain slim">
      <tbody>
        {shown.map(([name, label, format, isRate]) => {
          const value = last?.values.get(name) ?? (isRate ? 0 : undefined);
          if (value === undefined || first === undefined || last === undefined) return null;
          const seconds = (last.at - first.at) / 1000;
          const rate = seconds > 0 ? (value - (first.values.get(name) ?? 0)) / seconds : 0;
          return (
            <tr key={name}>
              <td>{label}</td>
              <td class="not-phone">
                <Spark
                  sums={pastOf(samples.value, name, isRate)}
                  label={`${label} of the last two minutes`}
                />
              </td>
              <td class="num">
                {isRate ? (seconds > 0 ? format(Math.max(0, rate)) : "…") : format(value)}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** A value for each sample that the page can hold: growth by second, or the value itself. */
function pastOf(samples: readonly Sample[], name: string, isRate: boolean): number[] {
  const past = new Array<number>(samplesMax).fill(0);
  const first = samplesMax - samples.length;
  for (const [at, { at: ms, values }] of samples.entries()) {
    const before = samples[at - 1];
    const value = values.get(name) ?? 0;
    if (!isRate) past[first + at] = value;
    else if (before !== undefined)
      past[first + at] =
        Math.max(0, value - (before.values.get(name) ?? 0)) / ((ms - before.at) / 1000);
  }
  return past;
}
