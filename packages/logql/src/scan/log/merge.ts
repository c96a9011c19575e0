import { formatLabels, type Labels } from "@skald/model";
import type { LogPlan } from "../../plan/plan.js";
import type { LogResult, RowLabels } from "../../plan/result.js";
import type { LogPartial } from "./log-scan.js";
import { RowStore } from "./row-store.js";
import { Thinning } from "./thinning.js";

/**
 * The answer of a log query from the partials of all its scans: rows in the direction of the query, thinned by the interval,
 * then cut at the limit. With an interval no partial may be truncated.
 */
export function mergeLogPartials(plan: LogPlan, partials: readonly LogPartial[]): LogResult {
  const labels = new LabelSets();
  const all = new RowStore();
  for (const partial of partials) addRows(all, partial, labels);
  const rows = new RowStore();
  for (const at of thin(plan, all).subarray(0, plan.limit)) rows.push(all.place(at), all.line(at));
  return {
    kind: "streams",
    rowCount: rows.count,
    timestamps: rows.timestamps(),
    labelSet: rows.labelSets(),
    lines: rows.lines(),
    labels: labels.sets,
    warnings: [],
  };
}

/** Label sets without repetition, by their labels and their origins. */
class LabelSets {
  readonly sets: RowLabels[] = [];
  readonly #byText = new Map<string, number>();

  find(set: RowLabels): number {
    const { labels, categories } = set;
    const { stream, structuredMetadata, parsed } = categories;
    const text = [labels, stream, structuredMetadata, parsed].map(formatLabels).join();
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    this.#byText.set(text, this.sets.length);
    return this.sets.push(set) - 1;
  }
}

function addRows(store: RowStore, partial: LogPartial, labels: LabelSets): void {
  const { bytes, offsets } = partial.lines;
  const renumbered = partial.labels.map((set) => labels.find(set));
  const { day, time, stream, sequence, row } = partial.places;
  for (let i = 0; i < partial.rowCount; i++) {
    const place = {
      day: day[i]!,
      time: time[i]!,
      stream: stream[i]!,
      sequence: sequence[i]!,
      row: row[i]!,
      labelSet: renumbered[partial.labelSet[i]!]!,
    };
    store.push(place, bytes.subarray(offsets[i]!, offsets[i + 1]!));
  }
}

/** The rows in the order of the query that its interval takes: all of them without one. */
function thin(plan: LogPlan, rows: RowStore): Uint32Array {
  const order = rows.order(plan.direction);
  if (plan.intervalNs === 0n) return order;
  const thinning = new Thinning(plan);
  return order.filter((at) => thinning.takes(rows.timestampNs(at)));
}

/** The rows of one stream of a result: numbers of its rows, in the order of the result. */
export interface ResultStream {
  readonly labels: Labels;
  readonly rows: Uint32Array;
}

/**
 * Groups the rows of a result into streams sorted by label text: by all labels, or by the labels of the stored
 * streams when the others are shown row by row.
 */
export function groupLogRows(result: LogResult, by: "all" | "stream"): ResultStream[] {
  const textOfSet = result.labels.map(({ labels, categories }) =>
    formatLabels(by === "all" ? labels : categories.stream),
  );
  const streams = new Map<string, { labels: Labels; rows: number[] }>();
  for (let row = 0; row < result.rowCount; row++) {
    const set = result.labelSet[row]!;
    const text = textOfSet[set]!;
    const known = streams.get(text);
    if (known !== undefined) {
      known.rows.push(row);
      continue;
    }
    const { labels, categories } = result.labels[set]!;
    streams.set(text, { labels: by === "all" ? labels : categories.stream, rows: [row] });
  }
  const sorted = [...streams].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.map(([, { labels, rows }]) => ({ labels, rows: Uint32Array.from(rows) }));
}
