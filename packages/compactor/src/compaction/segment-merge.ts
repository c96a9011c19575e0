import { createHash, randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Clock, SegmentLocation, SegmentRef } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import {
  type AddedSegment,
  type CallOptions,
  corruptSegmentOf,
  type DroppedRows,
  type GoneSegment,
  type IndexedSegment,
  type MostAsked,
  mergedId,
  type ObjectRange,
  type ObjectStore,
  type SealedSegment,
  segmentKey,
} from "@skald/storage";
import { mkdir, open, rm } from "@skald/storage/files";
import type { DayState } from "./day-state.js";
import type { MergeJob } from "./jobs.js";

/** The long part of a merge, on another thread. */
export interface MergeThreads {
  merge(
    job: MergeJob,
    options: { readonly signal: AbortSignal },
  ): Promise<SealedSegment | undefined>;
}

/** The tools of a merge. */
export interface MergeDeps {
  readonly store: ObjectStore;
  readonly threads: MergeThreads;
  readonly locate: (key: string) => SegmentLocation;
  readonly work: WorkFiles;
  readonly clock: Clock;
  /** What the queries of a tenant ask for. */
  readonly askedOf: (tenant: string, options: CallOptions) => Promise<MostAsked>;
  /** Share of the bytes of the lines that columns of fields may take. */
  readonly fieldShare: number;
}

/** A segment to merge, and its rows to drop. */
export interface MergeInput {
  readonly segment: IndexedSegment;
  readonly dropped?: DroppedRows | undefined;
}

/** The changes of a merge to the index, and the bytes of the written file. */
interface MergeChanges {
  readonly add: readonly AddedSegment[];
  readonly remove: readonly GoneSegment[];
  readonly bytes: number;
}

/** Inputs of a merge to fetch at a time, each in pieces. */
const inputsAtOnce = 8;

/** One merge of segments of a day. Its file counts once the index lists it. */
export class SegmentMerge {
  readonly #deps: MergeDeps;
  readonly #day: DayState;
  readonly #inputs: readonly MergeInput[];
  readonly #path: string;
  /** Paths of the inputs on this machine, in their order. */
  readonly #fetched: string[];

  constructor(deps: MergeDeps, day: DayState, inputs: readonly MergeInput[]) {
    this.#deps = deps;
    this.#day = day;
    this.#inputs = inputs;
    this.#path = deps.work.newPath();
    this.#fetched = inputs.map(() => "");
  }

  /** Writes a file with the rows of all inputs, or none when no row is left. */
  async run(signal: AbortSignal): Promise<MergeChanges> {
    const first = this.#inputs[0] as MergeInput;
    const id = mergedId(first.segment, hashOf(this.#day, this.#inputs));
    const sources = await this.#fetch(signal);
    const { tenant } = this.#day;
    const { askedOf, fieldShare } = this.#deps;
    const asked = await askedOf(tenant, { signal });
    const fields = { share: fieldShare, asked: asked.fields };
    const job = { tenant, id, path: this.#path, inputs: sources, texts: asked.texts, fields };
    const sealed = await this.#deps.threads.merge(job, { signal });
    const add = sealed === undefined ? [] : [await this.#put(id, sealed, signal)];
    const sinceMs = this.#deps.clock.nowMs();
    const by = sealed === undefined ? undefined : id;
    const remove = this.#inputs.map(({ segment }) => goneOf(segment, sinceMs, by));
    return { add, remove, bytes: sealed?.bytes ?? 0 };
  }

  /** The damaged input that an error is about; undefined when it is about none. */
  damagedBy(error: unknown): IndexedSegment | undefined {
    const damaged = corruptSegmentOf(error);
    const place = damaged === undefined ? -1 : this.#fetched.indexOf(damaged);
    return this.#inputs[place]?.segment;
  }

  /** Removes its files from this machine. */
  async clear(): Promise<void> {
    for (const file of [this.#path, ...this.#fetched]) await this.#deps.work.remove(file);
  }

  /** Fetches the inputs as files of this machine. */
  async #fetch(signal: AbortSignal): Promise<MergeJob["inputs"]> {
    const { store, work } = this.#deps;
    const sources: MergeJob["inputs"][number][] = [];
    await runConcurrently(
      this.#inputs.entries(),
      inputsAtOnce,
      signal,
      async ([i, input], signal) => {
        const ref = await work.local(this.#refOf(input.segment), store, { signal });
        this.#fetched[i] = ref.location.path;
        sources[i] = { ref, dropped: input.dropped };
      },
    );
    return sources;
  }

  /** Puts a merged file into the store, where an earlier attempt may have left it. */
  async #put(id: string, sealed: SealedSegment, signal: AbortSignal): Promise<AddedSegment> {
    const { store } = this.#deps;
    const { tenant } = this.#day;
    const { minNs, maxNs } = sealed;
    const key = segmentKey({ tenant, id, minNs, maxNs });
    await store.putFile(key, this.#path, { ifAbsent: true, isSynced: true, signal });
    const { sizeBytes } = await store.stat(key, { signal });
    const location = { kind: "file", path: this.#path } as const;
    const ref: SegmentRef = { kind: "segment", id, tenant, minNs, maxNs, sizeBytes, location };
    return { ref, level: 1 + Math.max(...this.#inputs.map(({ segment }) => segment.level)) };
  }

  #refOf(segment: IndexedSegment): SegmentRef {
    const { tenant } = this.#day;
    const { id, minNs, maxNs, sizeBytes } = segment;
    const location = this.#deps.locate(segmentKey({ tenant, id, minNs, maxNs }));
    return { kind: "segment", id, tenant, minNs, maxNs, sizeBytes, location };
  }
}

/** A replaced segment in the index. `by` is the segment that has its rows. */
export function goneOf(
  { id, minNs, maxNs }: IndexedSegment,
  sinceMs: number,
  by: string | undefined,
): GoneSegment {
  return { id, minNs, maxNs, sinceMs, by };
}

/** Equal for two compactors that do the same to the same generation, and different in a later generation. */
function hashOf({ tenant, baseNs, generation }: DayState, inputs: readonly MergeInput[]): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([tenant, String(baseNs), generation]));
  for (const { segment, dropped } of inputs) {
    hash.update(JSON.stringify(segment.id));
    if (dropped === undefined) continue;
    hash.update(dropped.blocks);
    for (const rows of dropped.rows) hash.update(rows);
  }
  return hash.digest("hex").slice(0, 32);
}

/** Bytes of an object to fetch at a time. */
const fetchBytes = 8 * 1024 * 1024;

/** The files of a compactor: fetched inputs, and merged files that are not in the store yet. None outlives the process. */
export class WorkFiles {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = join(dir, "merge");
  }

  /** Removes the files of earlier processes. */
  async open(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
    await mkdir(this.#dir, { recursive: true });
  }

  newPath(): string {
    return join(this.#dir, `${randomUUID()}.parquet`);
  }

  /** The segment as a file of this machine, fetched if it is elsewhere. */
  async local(
    ref: SegmentRef,
    store: Pick<ObjectStore, "getRange">,
    options: CallOptions,
  ): Promise<SegmentRef & { readonly location: { readonly kind: "file"; readonly path: string } }> {
    const { location } = ref;
    if (location.kind === "file") return { ...ref, location };
    const path = this.newPath();
    try {
      await this.#fetch(ref, path, (range) => store.getRange(location.key, range, options));
    } catch (error) {
      await this.remove(path);
      throw error;
    }
    return { ...ref, location: { kind: "file", path } };
  }

  async #fetch(
    { sizeBytes }: SegmentRef,
    path: string,
    read: (range: ObjectRange) => Promise<Uint8Array>,
  ): Promise<void> {
    const file = await open(path, "w");
    try {
      for (let offset = 0; offset < sizeBytes; offset += fetchBytes) {
        const length = Math.min(fetchBytes, sizeBytes - offset);
        await file.writeFile(await read({ offset, length }));
      }
    } finally {
      await file.close();
    }
  }

  /** Removes a file of this folder, and ignores any other file. */
  async remove(path: string): Promise<void> {
    if (path.startsWith(this.#dir)) await rm(path, { force: true });
  }
}
