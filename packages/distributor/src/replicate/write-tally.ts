import type { PushOutcome, PushRefusal } from "@skald/contracts";
import type { WritePlan } from "@skald/ring";

/** What one ingester said to the streams that it was sent; a failure is what its call rejected with. */
export type Reply = PushOutcome | { readonly failure: unknown };

/** What became of all streams of a push. */
export type Verdict =
  | { readonly kind: "stored"; readonly refusals: readonly PushRefusal[] }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * Counts the replies to one push, stream by stream. A stream is stored once a quorum took it without a refusal, and refused
 * once so many refused rows of it that the others are no quorum any more; it has failed once so many do not answer that those
 * who do are none.
 */
export class WriteTally {
  readonly #plan: WritePlan;
  /** Streams that are sent to the same ingesters are one: the plan's keys, or a single one for all. */
  readonly #groups: readonly Uint32Array[];
  readonly #clean: Uint16Array;
  readonly #refused: Uint16Array;
  readonly #failed: Uint16Array;
  readonly #replies: (Reply | undefined)[];
  #undecided: number;

  constructor(plan: WritePlan, streams: number) {
    this.#plan = plan;
    // Most pushes go to the same ingesters as a whole: then their streams stand or fall together.
    const isOne = plan.targets.length === plan.copies;
    const groups = isOne ? 1 : streams;
    this.#groups = plan.targets.map(({ keys }) => (isOne ? Uint32Array.of(0) : keys));
    this.#clean = new Uint16Array(groups);
    this.#refused = new Uint16Array(groups);
    this.#failed = new Uint16Array(groups);
    this.#replies = plan.targets.map(() => undefined);
    this.#undecided = groups;
  }

  /** Notes the reply of a target of the plan; the verdict as soon as there is one. */
  add(target: number, reply: Reply): Verdict | undefined {
    this.#replies[target] = reply;
    const counts = "failure" in reply ? this.#failed : this.#countsOf(reply);
    for (const group of this.#groups[target]!) {
      const wasDecided = this.#isDecided(group);
      counts[group]!++;
      if (!this.#canAnswer(group)) return { kind: "failed", error: this.#failureOf(group) };
      if (!wasDecided && this.#isDecided(group)) this.#undecided--;
    }
    return this.#undecided > 0 ? undefined : { kind: "stored", refusals: this.#refusals() };
  }

  #countsOf({ refusals }: PushOutcome): Uint16Array {
    return refusals.length === 0 ? this.#clean : this.#refused;
  }

  #canAnswer(group: number): boolean {
    return this.#plan.copies - this.#failed[group]! >= this.#plan.quorum;
  }

  #isDecided(group: number): boolean {
    const { copies, quorum } = this.#plan;
    const clean = this.#clean[group]!;
    const answers = clean + this.#refused[group]!;
    if (clean >= quorum) return true;
    const canBecomeClean = copies - this.#refused[group]! - this.#failed[group]! >= quorum;
    return answers >= quorum && !canBecomeClean;
  }

  /** Of the failures that a stream has met, the first in the order of the plan. */
  #failureOf(group: number): unknown {
    const failures = this.#replies.filter(
      (reply, i) => reply !== undefined && "failure" in reply && this.#groups[i]!.includes(group),
    );
    return (failures[0] as { failure: unknown }).failure;
  }

  /** Of the targets that have a stream that is refused, what they say; what several say of the same rows is said once. */
  #refusals(): PushRefusal[] {
    const merged = new Map<string, PushRefusal>();
    for (const [i, reply] of this.#replies.entries()) {
      if (reply === undefined || "failure" in reply || reply.refusals.length === 0) continue;
      const isRefused = this.#groups[i]!.some((group) => this.#clean[group]! < this.#plan.quorum);
      if (!isRefused) continue;
      for (const one of reply.refusals) {
        const key = JSON.stringify([one.status, one.reason, one.message]);
        const known = merged.get(key);
        if (known === undefined || known.entries < one.entries) merged.set(key, one);
      }
    }
    return [...merged.values()];
  }
}
