import { createHash } from "node:crypto";
import { dayNs, floorDiv } from "@skald/model";
import type { Logger } from "@skald/runtime";
import { inOrderOfArrival, type SealedSegment } from "@skald/storage";
import type { IngesterOptions } from "../settings/options.js";
import type { Heads } from "../tenant/heads.js";
import type { LocalSegment, LocalSegments } from "./local-segments.js";
import { temporaryOf } from "./placed-files.js";

/** Local segments of one tenant and day to make one of; survives a structured clone, so that a worker can do it. */
export interface LocalMergeJob {
  readonly tenant: string;
  readonly id: string;
  readonly path: string;
  /** In order of arrival. */
  readonly inputs: readonly Pick<LocalSegment, "ref">[];
  /** The store merges them again, so this is as cheap as sealing. */
  readonly level: 1;
  readonly filters: "bitmap";
  readonly sync: false;
}

/** Merges segments; the file is complete when it resolves, undefined when no row is left. */
export type MergeLocal = (
  job: LocalMergeJob,
  options: { readonly signal: AbortSignal },
) => Promise<SealedSegment | undefined>;

export interface LocalMergerContext {
  readonly options: IngesterOptions;
  readonly segments: LocalSegments;
  readonly heads: Heads;
  readonly merge: MergeLocal;
  /** Whether the log still has rows of earlier processes that are in no head: nothing is merged then. */
  readonly isReplaying: () => boolean;
  readonly log: Logger;
}

/** Largest size of a merged segment, as a multiple of the largest input. */
const maxGrowth = 4;
const maxInputs = 256;

/**
 * Merges small local segments of a tenant and day into one before they are uploaded. Many tenants, or little memory for heads,
 * make many of them, and each would be an object. The index of a merged segment names its inputs, so it replaces them
 * even when the process ends at any moment.
 */
export class LocalMerger {
  readonly #context: LocalMergerContext;
  readonly #abort = new AbortController();
  /** Ids of segments that could not be merged; they are uploaded as they are. */
  readonly #left = new Set<string>();

  constructor(context: LocalMergerContext) {
    this.#context = context;
  }

  /** The segments to merge with one that is due, including itself; none when it is uploaded as it is. */
  groupOf(due: LocalSegment): readonly LocalSegment[] {
    const { segments, heads, options } = this.#context;
    const { maxMergeBytes } = options.bounds;
    const { tenant } = due.ref;
    if (!this.#isSmall(due) || this.#isSealing(tenant)) return [];
    const day = dayOf(due);
    const ofDay = segments.of(tenant).filter((one) => dayOf(one) === day);
    if (ofDay.filter((one) => this.#isSmall(one)).length < 2) return [];
    const byId = new Map(ofDay.map((one) => [one.ref.id, one]));
    // Heads of an earlier process may be older than the segments.
    const unsealed = [...(heads.find(tenant)?.unsealed() ?? [])]
      .map(({ id, baseNs }) => ({ id, minNs: baseNs }))
      .filter(({ minNs }) => floorDiv(minNs, dayNs) === day);
    let group: LocalSegment[] = [];
    let bytes = 0;
    // A merged segment has one place in the order of arrival, so nothing may lie between its inputs.
    for (const { id } of inOrderOfArrival([...ofDay.map(({ ref }) => ref), ...unsealed])) {
      const found = byId.get(id);
      const one = found !== undefined && this.#isSmall(found) ? found : undefined;
      const { sizeBytes = 0 } = one?.ref ?? {};
      const isFull = group.length === maxInputs || bytes + sizeBytes > maxGrowth * maxMergeBytes;
      if (one === undefined || isFull) {
        if (group.includes(due)) break;
        group = [];
        bytes = 0;
      }
      if (one === undefined) continue;
      group.push(one);
      bytes += sizeBytes;
    }
    return group.length > 1 && group.includes(due) ? group : [];
  }

  /** Whether a head that is being sealed may soon be merged with it. */
  mayGrow(one: LocalSegment): boolean {
    return this.#isSmall(one) && this.#isSealing(one.ref.tenant);
  }

  /** Replaces segments by one. Never rejects: what cannot be merged stays as it is. */
  async merge(inputs: readonly LocalSegment[]): Promise<void> {
    const { segments, merge, log } = this.#context;
    const [first] = inputs as [LocalSegment, ...LocalSegment[]];
    const { tenant } = first.ref;
    const id = mergedIdOf(inputs);
    try {
      const path = await segments.pathOf({ tenant, id });
      const sources = inputs.map(({ ref }) => ({ ref }));
      const written = { path: temporaryOf(path), inputs: sources };
      const job = { tenant, id, ...written, level: 1, filters: "bitmap", sync: false } as const;
      const sealed = await merge(job, { signal: this.#abort.signal });
      if (sealed === undefined) throw new Error("no row is left of them");
      await segments.placed.place(path);
      segments.replace(inputs, { id, sealed, path });
      log.debug("merged local segments", { tenant, segment: id, inputs: inputs.length });
    } catch (error) {
      for (const { ref } of inputs) this.#left.add(ref.id);
      if (this.#abort.signal.aborted) return;
      log.warn("local segments cannot be merged; they are uploaded one by one", { tenant, error });
    }
  }

  /** Aborts running merges. */
  close(): void {
    this.#abort.abort();
  }

  /** A segment that may be in the store is not merged, because its rows would be there twice. */
  #isSmall({ ref, mayBeStored }: LocalSegment): boolean {
    const { maxMergeBytes } = this.#context.options.bounds;
    return !mayBeStored && !this.#left.has(ref.id) && ref.sizeBytes <= maxMergeBytes;
  }

  /** Whether rows of a tenant wait to be sealed: they may have arrived between those of segments. */
  #isSealing(tenant: string): boolean {
    const { heads, isReplaying } = this.#context;
    return isReplaying() || (heads.find(tenant)?.frozen.size ?? 0) > 0;
  }
}

function dayOf({ ref }: LocalSegment): bigint {
  return floorDiv(ref.minNs, dayNs);
}

/** The id of the first with a hash of all ids instead of its process: the same again after a crash. */
function mergedIdOf(inputs: readonly LocalSegment[]): string {
  const ids = inputs.map(({ ref }) => ref.id);
  const hash = createHash("sha256").update(JSON.stringify(ids)).digest("hex").slice(0, 8);
  const [first = ""] = ids;
  const renamed = first.replace(/-[0-9a-f]{8}(-[0-9a-z]{1,10}(?:_\d+_\d+)?)$/, `-${hash}$1`);
  return renamed === first ? `${first}-${hash}` : renamed;
}
