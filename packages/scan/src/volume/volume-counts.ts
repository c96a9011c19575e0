import type { VolumeCells, VolumePlan } from "@skald/contracts";
import { formatLabels, invalidArgument, type Labels } from "@skald/model";

/** Rows and bytes by group and bucket. */
export class VolumeCounts {
  readonly #plan: Pick<VolumePlan, "buckets" | "maxGroups">;
  readonly #groups: Labels[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #cells = new Map<number, { rows: number; bytes: number }>();

  constructor(plan: Pick<VolumePlan, "buckets" | "maxGroups">) {
    this.#plan = plan;
  }

  /** The number of a group. Throws invalid_argument when there are too many. */
  groupOf(labels: Labels): number {
    const text = formatLabels(labels);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const { maxGroups } = this.#plan;
    if (this.#groups.length >= maxGroups) {
      throw invalidArgument(
        `the query hit the max number of series limit (limit: ${maxGroups} series)`,
      );
    }
    this.#numbers.set(text, this.#groups.length);
    return this.#groups.push(labels) - 1;
  }

  add(group: number, bucket: number, rows: number, bytes: number): void {
    const key = group * this.#plan.buckets.count + bucket;
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { rows, bytes });
    else {
      cell.rows += rows;
      cell.bytes += bytes;
    }
  }

  finish(): Omit<VolumeCells, "blocks"> {
    const { count } = this.#plan.buckets;
    const keys = [...this.#cells.keys()];
    const cells = [...this.#cells.values()];
    return {
      groups: this.#groups,
      group: Uint32Array.from(keys, (key) => Math.floor(key / count)),
      bucket: Uint32Array.from(keys, (key) => key % count),
      rows: Float64Array.from(cells, ({ rows }) => rows),
      bytes: Float64Array.from(cells, ({ bytes }) => bytes),
    };
  }
}
