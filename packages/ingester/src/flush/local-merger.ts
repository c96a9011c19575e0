import { createHash } from "node:crypto";
import { dayNs, floorDiv, type SegmentRef } from "@skald/model";
import type { Logger } from "@skald/runtime";
import { inOrderOfArrival, type SealedSegment } from "@skald/storage";
import type { LocalSegment, LocalSegments } from "./local-segments.js";
import { temporaryOf } from "./placed-files.js";

/** Local segments of one tenant and day to make one of; survives a structured clone, so that a worker can do it. */
export interface LocalMergeJob {
  readonly tenant: string;
  readonly id: string;
  readonly path: string;
  /** In order of arrival. */
  readonly inputs: readonly Pick<LocalSegment, "ref">[];
  /** They are merged again in the store: as cheap as sealing. */
  readonly level: 1;
  readonly filters: "bitmap";
  readonly sync: false;
}

/** Merges segments; the file is complete when it resolves, undefined when no row is left. */
export type MergeLocal = (
  job: LocalMergeJob,
  options: { readonly signal: AbortSignal },
) => Promise<SealedSegment | undefined>;

export interface LocalMergerOptions {
  readonly segments: LocalSegments;
  readonly merge: MergeLocal;
  /** Bytes of a segment that is not worth it. */
  readonly maxInputBytes: number;
  /** Whether heads of a tenant wait to be sealed: their rows may have arrived between those of segments. */
  readonly isSealing: (tenant: string) => boolean;
  /** What a tenant holds in heads: those of an earlier process may be older than its segments. */
  readonly headsOf: (tenant: string) => readonly Pick<SegmentRef, "id" | "minNs">[];
  readonly log: Logger;
}

/** Bytes of what is merged, as a multiple of those of an input. */
const maxGrowth = 4;
const maxInputs = 256;

/**
 * Makes one local segment of several small ones of a tenant and day before they are uploaded: many tenants, or little memory for
 * heads, make many of them, and each would be an object. One that is merged has all that is needed to do without its inputs, whenever
 * the process ends: its index names them.
 */
export class LocalMerger {
  readonly #options: LocalMergerOptions;
  readonly #abort = new AbortController();
  /** Those that could not be merged are uploaded as they are. */
  readonly #left = new Set<string>();

  constructor(options: LocalMergerOptions) {
    this.#options = options;
  }

  /** The segments that are to be merged with one that is to be uploaded, itself included; none when it is uploaded as it is. */
  groupOf(due: LocalSegment): readonly LocalSegment[] {
    const { segments, isSealing, headsOf, maxInputBytes } = this.#options;
    const { tenant } = due.ref;
    if (!this.#isSmall(due) || isSealing(tenant)) return [];
    const day = dayOf(due);
    const ofDay = segments.of(tenant).filter((one) => dayOf(one) === day);
    if (ofDay.filter((one) => this.#isSmall(one)).length < 2) return [];
    const byId = new Map(ofDay.map((one) => [one.ref.id, one]));
    const heads = headsOf(tenant).filter(({ minNs }) => floorDiv(minNs, dayNs) === day);
    let group: LocalSegment[] = [];
    let bytes = 0;
    // What is merged has one place in the order of arrival: nothing may lie between its inputs.
    for (const { id } of inOrderOfArrival([...ofDay.map(({ ref }) => ref), ...heads])) {
      const found = byId.get(id);
      const one = found !== undefined && this.#isSmall(found) ? found : undefined;
      const { sizeBytes = 0 } = one?.ref ?? {};
      const isFull = group.length === maxInputs || bytes + sizeBytes > maxGrowth * maxInputBytes;
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

  /** Whether more may come soon that it is to be merged with. */
  mayGrow(one: LocalSegment): boolean {
    return this.#isSmall(one) && this.#options.isSealing(one.ref.tenant);
  }

  /** Puts one segment in the place of some. Never rejects: what cannot be merged stays as it is. */
  async merge(inputs: readonly LocalSegment[]): Promise<void> {
    const { segments, merge, log } = this.#options;
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

  /** Ends what runs. */
  close(): void {
    this.#abort.abort();
  }

  /** What may be in the store stays as it is: its rows would be there twice. */
  #isSmall({ ref, mayBeStored }: LocalSegment): boolean {
    return !mayBeStored && !this.#left.has(ref.id) && ref.sizeBytes <= this.#options.maxInputBytes;
  }
}

function dayOf({ ref }: LocalSegment): bigint {
  return floorDiv(ref.minNs, dayNs);
}

/** The id of the first, with what names them all in the place of its process: the same again after a crash. */
function mergedIdOf(inputs: readonly LocalSegment[]): string {
  const ids = inputs.map(({ ref }) => ref.id);
  const hash = createHash("sha256").update(JSON.stringify(ids)).digest("hex").slice(0, 8);
  const [first = ""] = ids;
  const renamed = first.replace(/-[0-9a-f]{8}(-[0-9a-z]{1,10}(?:_\d+_\d+)?)$/, `-${hash}$1`);
  return renamed === first ? `${first}-${hash}` : renamed;
}
