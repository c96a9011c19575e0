import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isAbort } from "../api/client.js";
import { fetchLabels } from "../api/fields.js";
import { fetchHolding } from "../api/stats.js";
import { formatBytes, formatCount } from "../parts/format.js";
import { navigate, route, zone } from "../state/explore.js";
import { describeRange, presets, type Range, resolveRange } from "../state/range.js";
import { SingleLines } from "./single.js";
import { growthText, spansOf } from "./spans.js";
import { LabelValues } from "./values.js";

interface LabelUse {
  readonly name: string;
  readonly values: number;
  readonly bytes: number;
  readonly before: number;
  readonly streams: number;
}

const valuesMany = 1000;
const labelsMax = 40;
const orders = ["bytes", "growth", "streams", "values"] as const;
type Order = (typeof orders)[number];

/** Which labels and values make how much, what grows, and what fell silent. */
export default function Streams() {
  const { from, to } = route.value;
  const uses = useSignal<readonly LabelUse[] | undefined>(undefined);
  const problem = useSignal("");
  const order = useSignal<Order>("bytes");
  const open = useSignal("");
  const range = resolveRange({ from, to }, Math.floor(Date.now() / 60_000) * 60_000);
  useEffect(() => {
    const asked = new AbortController();
    labelUses(range, asked.signal).then(
      (found) => {
        uses.value = found;
        problem.value = "";
      },
      (error: unknown) => {
        if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
      },
    );
    return () => asked.abort();
  }, [from, to, route.value.tenant]);
  const isPreset = to === "now" && presets.some((preset) => from === `now-${preset}`);
  const total = Math.max(1, ...(uses.value ?? []).map(({ bytes }) => bytes));
  const sorted = [...(uses.value ?? [])].sort(
    (a, b) => rank(order.value, b) - rank(order.value, a),
  );
  const widest = [...sorted].sort((a, b) => b.streams - a.streams)[0];
  return (
    <main class="page">
      <h1>Streams</h1>
      <div class="bar">
        <select
          class="field"
          aria-label="Time range"
          onChange={(event) => navigate({ from: `now-${event.currentTarget.value}`, to: "now" })}
        >
          {!isPreset && (
            <option selected>{describeRange({ from, to }, zone.value, Date.now())}</option>
          )}
          {presets.map((preset) => (
            <option value={preset} key={preset} selected={isPreset && from === `now-${preset}`}>
              {describeRange({ from: `now-${preset}`, to: "now" }, zone.value, 0)}
            </option>
          ))}
        </select>
        {orders.map((name) => (
          <button
            class={`button small${order.value === name ? " on" : ""}`}
            type="button"
            key={name}
            aria-pressed={order.value === name}
            onClick={() => (order.value = name)}
          >
            by {name}
          </button>
        ))}
      </div>
      {problem.value !== "" && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      {uses.value === undefined && problem.value === "" && <p class="dim">Counting…</p>}
      {uses.value?.length === 0 && <p>No streams in this range.</p>}
      {sorted.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th>label</th>
              <th class="num">values</th>
              <th class="not-phone">share of bytes</th>
              <th class="num">bytes</th>
              <th class="num">growth</th>
              <th class="num">streams</th>
              <th>look at</th>
            </tr>
          </thead>
          <tbody>
            {sorted.map((use) => (
              <LabelRow
                key={use.name}
                {...{ use, total, range }}
                isOpen={open.value === use.name}
                onToggle={() => (open.value = open.value === use.name ? "" : use.name)}
              />
            ))}
          </tbody>
        </table>
      )}
      {widest !== undefined && (
        <SingleLines
          label={widest.name}
          labels={sorted.map(({ name }) => name).sort()}
          span={spansOf(range).now}
        />
      )}
    </main>
  );
}

interface LabelRowProps {
  readonly use: LabelUse;
  readonly total: number;
  readonly range: Range;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function LabelRow({ use, total, range, isOpen, onToggle }: LabelRowProps) {
  const { name, values, bytes, before, streams } = use;
  return (
    <>
      <tr>
        <td>
          <button class="tool" type="button" aria-expanded={isOpen} onClick={onToggle}>
            {isOpen ? "▾" : "▸"} {name}
          </button>
        </td>
        <td class="num">{formatCount(values)}</td>
        <td class="not-phone">
          <span class="share">
            <i style={{ width: `${(bytes / total) * 100}%` }} />
          </span>
        </td>
        <td class="num">{formatBytes(bytes)}</td>
        <td class="num">{growthText(bytes, before)}</td>
        <td class="num">{formatCount(streams)}</td>
        <td class="warns">
          {values > valuesMany ? `over ${valuesMany} values: better a field than a label` : ""}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={7}>
            <LabelValues label={name} range={range} />
          </td>
        </tr>
      )}
    </>
  );
}

function rank(order: Order, use: LabelUse): number {
  return order === "growth" ? use.bytes / Math.max(1, use.before) : use[order];
}

async function labelUses(range: Range, signal: AbortSignal): Promise<LabelUse[]> {
  const { now, before } = spansOf(range);
  const labels = (await fetchLabels(undefined, now, signal)).slice(0, labelsMax);
  return Promise.all(
    labels.map(async ({ name, values }) => {
      const query = `{${name}=~".+"}`;
      const [{ bytes, streams }, earlier] = await Promise.all([
        fetchHolding(query, now, signal),
        fetchHolding(query, before, signal),
      ]);
      return { name, values, bytes, before: earlier.bytes, streams };
    }),
  );
}
