import type { MinuteDigests, SkippedMinutes } from "@skald/contracts";
import { numberMinutes, streamMinutes } from "@skald/scan";

/** Collects minutes to leave out: of single streams, and of all where no stream counts. */
export class SkipList {
  readonly #whole = new Set<number>();
  readonly #byStream = new Map<number, number[]>();

  add(stream: number, added: readonly number[]): void {
    const minutes = this.#byStream.get(stream);
    if (minutes === undefined) this.#byStream.set(stream, [...added]);
    else minutes.push(...added);
  }

  addAll(other: SkipList | undefined): void {
    if (other === undefined) return;
    for (const minute of other.#whole) this.#whole.add(minute);
    for (const [stream, minutes] of other.#byStream) this.add(stream, minutes);
  }

  /**
   * Says in one word what is left out of all streams that there are; `minutesOf` a digest are those that it covers. Gives
   * whether that is all that is held.
   */
  coverWhole(held: MinuteDigests, minutesOf: (first: number) => readonly number[]): boolean {
    const left = new Map<number, number>();
    for (const stretches of numberMinutes(held).values()) {
      for (const first of stretches.keys()) {
        for (const minute of minutesOf(first)) left.set(minute, (left.get(minute) ?? 0) + 1);
      }
    }
    for (const minutes of this.#byStream.values()) {
      for (const minute of minutes) left.set(minute, (left.get(minute) ?? 0) - 1);
    }
    let isAll = true;
    for (const [minute, count] of left) {
      if (count === 0) this.#whole.add(minute);
      else isAll = false;
    }
    for (const [stream, minutes] of this.#byStream) {
      const others = minutes.filter((minute) => !this.#whole.has(minute));
      if (others.length > 0) this.#byStream.set(stream, others);
      else this.#byStream.delete(stream);
    }
    return isAll;
  }

  finish(): SkippedMinutes {
    const all: number[] = [];
    for (const minute of [...this.#whole].sort((a, b) => a - b)) {
      if (all.at(-1) === minute) all[all.length - 1] = minute + 1;
      else all.push(minute, minute + 1);
    }
    return { all: Uint32Array.from(all), some: streamMinutes(this.#byStream) };
  }
}
