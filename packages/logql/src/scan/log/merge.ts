import { dayNs, floorDiv, formatLabels, invalidArgument, type Labels } from "@skald/model";
import type { LogPlan } from "../../plan/plan.js";
import type { LogResult, RowLabels } from "../../plan/result.js";
import { type LogPartial, maxRowsBeforeThinning } from "./log-scan.js";
import { type RowPlaces, RowStore } from "./row-store.js";

/**
 * The answer of a log query from the partials of all its scans: rows in the direction of the query, thinned by the
 * interval, then cut at the limit. Throws invalid_argument when thinning would need rows that the scans left out.
 */
export function mergeLogPartials(plan: LogPlan, partials: readonly LogPartial[]): LogResult {
  const labels = new LabelSets();
  const all = new RowStore();
  for (const partial of partials) addRows(all, partial, labels);
  const order = all.order(plan.direction);
  const kept = plan.intervalNs > 0n ? thin(plan, all, order, horizonOf(plan, partials)) : order;
  const rows = new RowStore();
  for (const at of kept.subarray(0, plan.limit)) rows.push(all.place(at), all.line(at));
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
  const { day, time, sequence, row } = rowPlaces(partial);
  for (let i = 0; i < partial.rowCount; i++) {
    const place = {
      day: day[i]!,
      time: time[i]!,
      sequence: sequence[i]!,
      row: row[i]!,
      labelSet: renumbered[partial.labelSet[i]!]!,
    };
    store.push(place, bytes.subarray(offsets[i]!, offsets[i + 1]!));
  }
}

/** The places of the rows of a partial, to be compared with those of others. */
export function rowPlaces({ rowCount, timestamps, sequence, row }: LogPartial): RowPlaces {
  const day = new Float64Array(rowCount);
  const time = new Float64Array(rowCount);
  for (let i = 0; i < rowCount; i++) {
    const at = floorDiv(timestamps[i]!, dayNs);
    day[i] = Number(at);
    time[i] = Number(timestamps[i]! - at * dayNs);
  }
  return { day, time, sequence, row };
}

/** The best of the times behind which some partial left out rows; undefined when none did. */
function horizonOf(plan: LogPlan, partials: readonly LogPartial[]): bigint | undefined {
  let horizon: bigint | undefined;
  for (const { truncated, timestamps } of partials) {
    const last = timestamps.at(-1);
    if (!truncated || last === undefined) continue;
    if (horizon === undefined || isBehind(plan, horizon, last)) horizon = last;
  }
  return horizon;
}

/** True when a row at `time` comes behind one at `other` in the direction of the query. */
function isBehind(plan: LogPlan, time: bigint, other: bigint): boolean {
  return plan.direction === "forward" ? time > other : time < other;
}

/** Every row that lies at least the interval behind the last one taken, up to the limit. */
function thin(
  plan: LogPlan,
  rows: RowStore,
  order: Uint32Array,
  horizon: bigint | undefined,
): Uint32Array {
  const taken: number[] = [];
  let last: bigint | undefined;
  for (const at of order) {
    const time = rows.timestampNs(at);
    if (taken.length === plan.limit) break;
    if (horizon !== undefined && isBehind(plan, time, horizon)) throw tooManyRows();
    const distance = last === undefined ? plan.intervalNs : distanceOf(last, time);
    if (distance < plan.intervalNs) continue;
    taken.push(at);
    last = time;
  }
  if (horizon !== undefined && taken.length < plan.limit) throw tooManyRows();
  return Uint32Array.from(taken);
}

function distanceOf(a: bigint, b: bigint): bigint {
  return a < b ? b - a : a - b;
}

function tooManyRows(): Error {
  return invalidArgument(
    `a query with an interval looks at no more than ${maxRowsBeforeThinning} lines; narrow the time range or the query`,
  );
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
