import type { VolumeCells, VolumePlan } from "@skald/contracts";
import { emptyLabels, type Labels } from "@skald/model";
import type { SourceView } from "../source/view.js";
import { VolumeCounts } from "./volume-counts.js";

/** Counts rows of streams by the groups that these are in, and buckets of time. */
export class VolumeTable {
  readonly #plan: VolumePlan;
  readonly #counts: VolumeCounts;
  /** Of label sets that the streams of the source at hand share. */
  #groupsOfLabels = new Map<Labels, readonly number[]>();
  /** Of the streams of the source at hand that were added. */
  #groupsOfStream: (readonly number[] | undefined)[] = [];
  #labelsOf: (stream: number) => Labels = () => emptyLabels;

  constructor(plan: VolumePlan) {
    this.#plan = plan;
    this.#counts = new VolumeCounts(plan);
  }

  /** What is added from here on is of streams of this source. */
  open({ streams }: SourceView): void {
    const { names } = this.#plan.groupBy;
    this.#groupsOfStream = [];
    this.#groupsOfLabels = new Map();
    this.#labelsOf = names === undefined ? streams : (streams.only?.(names) ?? streams);
  }

  add(stream: number, bucket: number, rows: number, bytes: number): void {
    if (rows === 0) return;
    const groups = this.#groupsOf(stream);
    for (let i = 0; i < groups.length; i++) this.#counts.add(groups[i]!, bucket, rows, bytes);
  }

  /** Whether a stream of the source at hand was added. */
  has(stream: number): boolean {
    return this.#groupsOfStream[stream] !== undefined;
  }

  finish(): Omit<VolumeCells, "blocks"> {
    return this.#counts.finish();
  }

  #groupsOf(stream: number): readonly number[] {
    let groups = this.#groupsOfStream[stream];
    if (groups === undefined) {
      const labels = this.#labelsOf(stream);
      groups = this.#groupsOfLabels.get(labels) ?? this.#groupsIn(labels);
      this.#groupsOfLabels.set(labels, groups);
      this.#groupsOfStream[stream] = groups;
    }
    return groups;
  }

  #groupsIn(labels: Labels): readonly number[] {
    if (this.#plan.groupBy.kind === "series") return [this.#counts.groupOf(labels)];
    return labels.names.map((name) => this.#counts.groupOf({ names: [name], values: [""] }));
  }
}
