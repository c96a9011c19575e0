import type { VolumeAnswer, VolumeOutcome, VolumePlan } from "@skald/contracts";
import { StreamHashes, VolumeCounts } from "@skald/scan";

/** Puts together what was counted in parts of the sources. Throws invalid_argument at too many groups. */
export class VolumeMerge {
  readonly #counts: VolumeCounts;
  readonly #streams = new StreamHashes();
  #blocks = 0;

  constructor(plan: VolumePlan) {
    this.#counts = new VolumeCounts(plan);
  }

  add({ groups, group, bucket, rows, bytes, blocks, streams }: VolumeOutcome): void {
    const numbers = groups.map((labels) => this.#counts.groupOf(labels));
    for (let i = 0; i < group.length; i++) {
      this.#counts.add(numbers[group[i]!]!, bucket[i]!, rows[i]!, bytes[i]!);
    }
    for (let at = 0; at < streams.length; at += 2) {
      this.#streams.add(streams[at]!, streams[at + 1]!);
    }
    this.#blocks += blocks;
  }

  finish(): Omit<VolumeAnswer, "stats" | "warnings"> {
    return { ...this.#counts.finish(), blocks: this.#blocks, streamCount: this.#streams.count };
  }
}
