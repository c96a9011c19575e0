import { useSignal } from "@preact/signals";
import { formatMatcher } from "@skald/model";
import { useEffect } from "preact/hooks";
import { editQuery } from "../answer/run.js";
import { isAbort } from "../api/client.js";
import { fetchVolume } from "../api/stats.js";
import { Spark, trend } from "../chart/spark.js";
import { formatBytes } from "../parts/format.js";
import { navigate } from "../state/explore.js";
import { type Range, stepFor } from "../state/range.js";
import { growthText, spansOf } from "./spans.js";

interface ValueUse {
  readonly value: string;
  readonly bytes: number;
  readonly before: number;
  readonly points: readonly (readonly [number, number])[];
}

const valuesMax = 50;

/** The values of a label: how much each makes over time, and which made something before and nothing now. */
export function LabelValues({ label, range }: { readonly label: string; readonly range: Range }) {
  const uses = useSignal<readonly ValueUse[] | undefined>(undefined);
  const problem = useSignal("");
  const { now } = spansOf(range);
  useEffect(() => {
    const asked = new AbortController();
    valueUses(label, range, asked.signal).then(
      (found) => (uses.value = found),
      (error: unknown) => {
        if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
      },
    );
    return () => asked.abort();
  }, [label, now.startNs, now.endNs]);
  if (problem.value !== "") return <p class="bad">{problem.value}</p>;
  if (uses.value === undefined) return <p class="dim">Counting…</p>;
  const open = (value: string) => {
    navigate({ screen: "explore" });
    editQuery(`{${formatMatcher({ name: label, op: "=", value })}}`);
  };
  return (
    <table class="plain">
      <thead>
        <tr>
          <th>value</th>
          <th>over time</th>
          <th class="num">bytes</th>
          <th class="num">growth</th>
          <th>look at</th>
        </tr>
      </thead>
      <tbody>
        {uses.value.map(({ value, bytes, before, points }) => (
          <tr key={value}>
            <td>
              <button
                class="tool"
                type="button"
                title="Open in Explore"
                onClick={() => open(value)}
              >
                {value}
              </button>
            </td>
            <td>
              <Spark sums={trend(points, now, partsOf(range))} />
            </td>
            <td class="num">{formatBytes(bytes)}</td>
            <td class="num">{growthText(bytes, before)}</td>
            <td class="warns">{bytes === 0 && before > 0 ? "silent now" : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function partsOf(range: Range): number {
  return Math.max(1, Math.floor(Number(range.toNs - range.fromNs) / 1e9 / stepFor(range, 44)));
}

async function valueUses(label: string, range: Range, signal: AbortSignal): Promise<ValueUse[]> {
  const { now, before } = spansOf(range);
  const query = `{${label}=~".+"}`;
  const [current, earlier, overTime] = await Promise.all([
    fetchVolume({ query, label, limit: valuesMax }, now, signal),
    fetchVolume({ query, label, limit: valuesMax }, before, signal),
    fetchVolume({ query, label, limit: valuesMax, step: stepFor(range, 44) }, now, signal),
  ]);
  const bytesOf = (list: typeof current) =>
    new Map(list.map(({ labels, points }) => [labels[label] ?? "", points[0]?.[1] ?? 0]));
  const [bytes, past] = [bytesOf(current), bytesOf(earlier)];
  const points = new Map(overTime.map((one) => [one.labels[label] ?? "", one.points]));
  return [...new Set([...bytes.keys(), ...past.keys()])].map((value) => ({
    value,
    bytes: bytes.get(value) ?? 0,
    before: past.get(value) ?? 0,
    points: points.get(value) ?? [],
  }));
}
