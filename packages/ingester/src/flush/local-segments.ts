import { basename, dirname, join, relative } from "node:path";
import {
  type Clock,
  type ErrorCode,
  type SegmentRef,
  SkaldError,
  type SteadyClock,
} from "@skald/model";
import type { Logger } from "@skald/runtime";
import {
  makeLastingDirectory,
  maxListingAgeMs,
  openSegmentFile,
  replacedBy,
  type SealedSegment,
} from "@skald/storage";
import { mkdir, readdir, rename, rm, stat, writeFile } from "@skald/storage/files";
import type { Head } from "../head/head.js";
import {
  isStray,
  isUnfinished,
  markerOf,
  PlacedFiles,
  segmentSuffix,
  tenantDir,
  tenantOf,
  uploadingMarkerOf,
} from "./placed-files.js";

const nsPerMs = 1_000_000n;
/** Codes of errors that say nothing about the contents of a file, or that a later program wrote it. */
const otherCodes: readonly ErrorCode[] = ["unavailable", "newer_version"];

/** A sealed file on this machine. */
export interface LocalSegment {
  readonly ref: SegmentRef;
  readonly path: string;
  /** Both by the steady clock. */
  readonly sealedMs: number;
  /** Last log file with rows of it; the local copy outlives that, so that replay knows what is sealed. */
  lastWalFile: number;
  /** When the store had it; undefined before that. */
  uploadedMs: number | undefined;
  /** Whether the store may have it although nobody knows: an upload was begun, by this process or maybe by an earlier one. */
  mayBeStored: boolean;
  /** The one that has its rows: this one stays only for queries that know it, and for the log. */
  replacedBy?: LocalSegment;
}

export interface LocalSegmentsOptions {
  readonly dataDir: string;
  readonly log: Logger;
  readonly clock: SteadyClock;
  /** What files of earlier processes are dated by. */
  readonly timeOfDay: Clock;
  /** How long a copy stays once the store has it. */
  readonly retainMs: number;
  /** Told of each file that was deleted. */
  readonly onDropped: ((path: string) => void) | undefined;
}

/**
 * The segments on the local disk: `<dir>/<tenant>/<id>.parquet`, and beside each that the store has an empty
 * `<id>.uploaded`, so that no restart uploads again what the compactor has merged and deleted since; `<id>.uploading` stands beside one of
 * which an upload was begun, and `<dir>/uploads.marked` says that none was of one without. One that was merged of others
 * says so in its index, and counts instead of them from the moment that it is there.
 */
export class LocalSegments {
  readonly dropped: DroppedCopies;
  readonly placed: PlacedFiles;
  readonly #dir: string;
  readonly #quarantineDir: string;
  /** There since a process that marks what it begins to upload had opened the directory. */
  readonly #markedPath: string;
  readonly #log: Logger;
  readonly #clock: SteadyClock;
  readonly #timeOfDay: Clock;
  readonly #onDropped: ((path: string) => void) | undefined;
  /** When this process began, and by tenant the last time of a segment that it dropped; ns since the epoch. */
  readonly #startNs: bigint;
  readonly #droppedNs = new Map<string, bigint>();
  readonly #byTenant = new Map<string, Map<string, LocalSegment>>();

  constructor(options: LocalSegmentsOptions) {
    this.dropped = new DroppedCopies(options);
    this.#dir = join(options.dataDir, "segments");
    this.placed = new PlacedFiles(this.#dir);
    this.#markedPath = join(this.#dir, "uploads.marked");
    this.#quarantineDir = join(options.dataDir, "quarantine");
    this.#log = options.log;
    this.#clock = options.clock;
    this.#timeOfDay = options.timeOfDay;
    this.#onDropped = options.onDropped;
    this.#startNs = BigInt(Math.ceil(options.timeOfDay.nowMs())) * nsPerMs;
  }

  /**
   * Finds the files of earlier processes; moves corrupt ones into quarantine and returns how many those were. Throws
   * `newer_version`, with nothing changed, when a later program wrote one of them.
   */
  async open(): Promise<{ corrupt: number }> {
    await makeLastingDirectory(this.#dir);
    const entries = await readdir(this.#dir, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    const paths = new Set(files.map((entry) => join(entry.parentPath, entry.name)));
    // What a process had placed that was killed before its sync: the log is cut for it too.
    for (const dir of this.placed.directoriesOf(paths)) await this.placed.syncs.sync(dir);
    const isMarked = paths.has(this.#markedPath);
    const useless = (path: string) => isUnfinished(path) || isStray(path, paths);
    const replaced = new Map<LocalSegment, readonly string[]>();
    const damage = new Map<string, SkaldError>();
    for (const path of [...paths].sort()) {
      if (useless(path) || !path.endsWith(segmentSuffix)) continue;
      const reason = await this.#adopt(path, paths, replaced);
      if (reason !== undefined) damage.set(path, reason);
    }
    for (const path of paths) if (useless(path)) await rm(path, { force: true });
    for (const [path, reason] of damage) await this.#setAside(path, reason);
    for (const [segment, ids] of replaced) {
      for (const id of ids) this.#link(this.get(segment.ref.tenant, id), segment);
    }
    if (!isMarked) await this.#markAll();
    return { corrupt: damage.size };
  }

  /** An earlier version did not say which uploads it had begun. */
  async #markAll(): Promise<void> {
    const waiting = this.files().filter(({ uploadedMs }) => uploadedMs === undefined);
    for (const segment of waiting) await this.markUploading(segment);
    await this.placed.sync();
    await writeFile(this.#markedPath, "");
  }

  /** Where the segment of a head goes; its directory is there. */
  async pathOf(head: Pick<Head, "tenant" | "id">): Promise<string> {
    const path = join(this.#dir, tenantDir(head.tenant), head.id + segmentSuffix);
    await mkdir(dirname(path), { recursive: true });
    return path;
  }

  add(head: Head, sealed: SealedSegment, path: string): LocalSegment {
    return this.#add({
      ref: refOf(head.tenant, head.id, path, sealed),
      path,
      sealedMs: this.#clock.elapsedMs(),
      lastWalFile: head.lastFile,
      uploadedMs: undefined,
      mayBeStored: false,
    });
  }

  /** Puts one that has the rows of some in their place, in the same turn; it is as old as the oldest of them. */
  replace(
    inputs: readonly LocalSegment[],
    {
      id,
      sealed,
      path,
    }: { readonly id: string; readonly sealed: SealedSegment; readonly path: string },
  ): void {
    const [
      {
        ref: { tenant },
      },
    ] = inputs as [LocalSegment, ...LocalSegment[]];
    const segment = this.#add({
      ref: refOf(tenant, id, path, sealed),
      path,
      sealedMs: Math.min(...inputs.map(({ sealedMs }) => sealedMs)),
      lastWalFile: Math.max(...inputs.map(({ lastWalFile }) => lastWalFile)),
      uploadedMs: undefined,
      mayBeStored: false,
    });
    for (const input of inputs) this.#link(input, segment);
  }

  /** Also one that another one stands for. */
  get(tenant: string, id: string): LocalSegment | undefined {
    return this.#byTenant.get(tenant)?.get(id);
  }

  /** Each row is in one of them. */
  all(): LocalSegment[] {
    return this.files().filter(isCurrent);
  }

  /** Those that another one stands for included. */
  files(): LocalSegment[] {
    return [...this.#byTenant.values()].flatMap((segments) => [...segments.values()]);
  }

  of(tenant: string): LocalSegment[] {
    return [...(this.#byTenant.get(tenant)?.values() ?? [])].filter(isCurrent);
  }

  /** Segments with rows in a range, both ends inclusive, ns since the epoch. */
  select(tenant: string, fromNs: bigint, toNs: bigint): SegmentRef[] {
    return this.of(tenant)
      .map(({ ref }) => ref)
      .filter((ref) => ref.minNs < toNs && ref.maxNs >= fromNs);
  }

  /**
   * No row of this time or later was ever dropped from this disk, by this process or an earlier one that took rows at
   * most `graceMs` ahead of its clock.
   */
  completeFromNs(tenant: string, graceMs: number): bigint {
    const earlier = this.#startNs + BigInt(Math.ceil(graceMs)) * nsPerMs;
    const dropped = this.#droppedNs.get(tenant) ?? 0n;
    return dropped >= earlier ? dropped + 1n : earlier;
  }

  /** Remembers that the store may have the segment, also for later processes; after a power cut too once its name is synced. */
  async markUploading(segment: LocalSegment): Promise<void> {
    await writeFile(uploadingMarkerOf(segment.path), "");
    this.placed.note(segment.path);
    segment.mayBeStored = true;
  }

  /**
   * Remembers, also for later processes and after a power cut, that the store has the segment: by then it may be merged there, and
   * its object gone.
   */
  async markUploaded(segment: LocalSegment): Promise<void> {
    // Without the file that names them they would be taken for what the store lacks.
    for (const input of this.#inputsOf(segment)) await writeFile(markerOf(input.path), "");
    await writeFile(markerOf(segment.path), "");
    await this.placed.syncs.sync(dirname(segment.path));
    await rm(uploadingMarkerOf(segment.path), { force: true });
    segment.uploadedMs = this.#clock.elapsedMs();
  }

  /** Whether a local copy may be deleted: not before all that say that it has their rows. */
  isLast(segment: LocalSegment): boolean {
    return this.#inputsOf(segment).length === 0;
  }

  /** Deletes a local copy. */
  async drop(segment: LocalSegment): Promise<void> {
    const { tenant, id, maxNs } = segment.ref;
    const { uploadedMs } = segment.replacedBy ?? segment;
    if (uploadedMs !== undefined) this.dropped.note(segment.ref, uploadedMs);
    if (isCurrent(segment) && maxNs > (this.#droppedNs.get(tenant) ?? 0n))
      this.#droppedNs.set(tenant, maxNs);
    const segments = this.#byTenant.get(tenant);
    segments?.delete(id);
    if (segments?.size === 0) this.#byTenant.delete(tenant);
    await rm(segment.path, { force: true });
    this.#onDropped?.(segment.path);
    await rm(markerOf(segment.path), { force: true });
    await rm(uploadingMarkerOf(segment.path), { force: true });
  }

  #inputsOf(segment: LocalSegment): LocalSegment[] {
    const known = this.#byTenant.get(segment.ref.tenant)?.values() ?? [];
    return [...known].filter((one) => one.replacedBy === segment);
  }

  /** What stands for one that stands for others stands for those. */
  #link(input: LocalSegment | undefined, segment: LocalSegment): void {
    if (input === undefined || input === segment) return;
    const last = segment.replacedBy ?? segment;
    for (const one of this.#inputsOf(input)) one.replacedBy = last;
    input.replacedBy = last;
  }

  /** Returns what is wrong with a file that is damaged. */
  async #adopt(
    path: string,
    paths: ReadonlySet<string>,
    replaced: Map<LocalSegment, readonly string[]>,
  ): Promise<SkaldError | undefined> {
    const id = basename(path, segmentSuffix);
    const tenant = this.#tenantOf(path);
    try {
      const location = { kind: "file", path } as const;
      const { segment, close } = openSegmentFile({ id, tenant, location });
      close();
      const nowMs = this.#clock.elapsedMs();
      const ageMs = Math.max(0, this.#timeOfDay.nowMs() - (await stat(path)).mtimeMs);
      const uploaded = paths.has(markerOf(path));
      const adopted = this.#add({
        ref: refOf(tenant, id, path, segment),
        path,
        sealedMs: nowMs - ageMs,
        lastWalFile: 0,
        uploadedMs: uploaded ? nowMs : undefined,
        mayBeStored: uploaded || paths.has(uploadingMarkerOf(path)) || !paths.has(this.#markedPath),
      });
      replaced.set(adopted, replacedBy(segment.image) ?? []);
      return undefined;
    } catch (error) {
      // No other error says that the file is damaged.
      const isDamage = error instanceof SkaldError && !otherCodes.includes(error.code);
      if (!isDamage) throw error;
      return error;
    }
  }

  #tenantOf(path: string): string {
    return tenantOf(relative(this.#dir, dirname(path)));
  }

  async #setAside(path: string, reason: SkaldError): Promise<void> {
    const tenant = this.#tenantOf(path);
    const aside = join(this.#quarantineDir, relative(this.#dir, path));
    try {
      await makeLastingDirectory(dirname(aside));
      await rename(path, aside);
      // Before its old name is gone for good.
      await this.placed.syncs.sync(dirname(aside));
      this.#log.error("a local segment is corrupt; set aside", {
        tenant,
        path: aside,
        error: reason,
      });
    } catch (error) {
      const facts = { tenant, path, error: reason, cause: error };
      this.#log.error("a local segment is corrupt, and cannot be set aside; left out", facts);
    }
  }

  #add(segment: LocalSegment): LocalSegment {
    const { tenant, id } = segment.ref;
    const segments = this.#byTenant.get(tenant) ?? new Map<string, LocalSegment>();
    this.#byTenant.set(tenant, segments.set(id, segment));
    return segment;
  }
}

function isCurrent({ replacedBy: other }: LocalSegment): boolean {
  return other === undefined;
}

function refOf(
  tenant: string,
  id: string,
  path: string,
  { minNs, maxNs, sizeBytes }: Pick<SealedSegment, "minNs" | "maxNs" | "sizeBytes">,
): SegmentRef {
  const location = { kind: "file", path } as const;
  return { kind: "segment", id, tenant, minNs, maxNs, location, sizeBytes };
}

interface Dropped {
  readonly tenant: string;
  readonly minNs: bigint;
  /** When the store had it. */
  readonly uploadedMs: number;
}

/**
 * Local copies that were dropped so soon after their upload that a listing of the store that is still in use may lack them. Of what
 * an earlier process dropped it knows nothing but that it was stored before this one began.
 */
export class DroppedCopies {
  readonly #clock: SteadyClock;
  readonly #startMs: number;
  /** Where copies stay longer than any listing there is never anything to say. */
  readonly #isSoon: boolean;
  #dropped: Dropped[] = [];

  constructor({ clock, retainMs }: { readonly clock: SteadyClock; readonly retainMs: number }) {
    this.#clock = clock;
    this.#startMs = clock.elapsedMs();
    this.#isSoon = retainMs <= maxListingAgeMs;
  }

  note({ tenant, minNs }: SegmentRef, uploadedMs: number): void {
    if (!this.#isSoon) return;
    this.#forgetOld();
    this.#dropped.push({ tenant, minNs, uploadedMs });
  }

  /** A listing that was begun less than this ago, in ms, has all that was dropped of a tenant; undefined when any has that is in use. */
  storedAgoMs(tenant: string): number | undefined {
    this.#forgetOld();
    const own = this.#dropped.filter((one) => one.tenant === tenant);
    const lastMs = Math.max(...own.map(({ uploadedMs }) => uploadedMs), this.#earlierMs);
    return Number.isFinite(lastMs) ? this.#clock.elapsedMs() - lastMs : undefined;
  }

  /** Time of the oldest row of them, ns since the epoch: 0 while that is not known, undefined when there is none. */
  oldestNs(): bigint | undefined {
    if (Number.isFinite(this.#earlierMs)) return 0n;
    this.#forgetOld();
    const [first, ...others] = this.#dropped.map(({ minNs }) => minNs);
    return others.reduce(
      (oldest, ns) => (oldest === undefined || ns < oldest ? ns : oldest),
      first,
    );
  }

  /** Until when earlier processes may have stored what they dropped; -Infinity once every listing is younger. */
  get #earlierMs(): number {
    const isYoung = this.#clock.elapsedMs() - this.#startMs <= maxListingAgeMs;
    return this.#isSoon && isYoung ? this.#startMs : Number.NEGATIVE_INFINITY;
  }

  #forgetOld(): void {
    const beforeMs = this.#clock.elapsedMs() - maxListingAgeMs;
    if (this.#dropped.some(({ uploadedMs }) => uploadedMs < beforeMs))
      this.#dropped = this.#dropped.filter(({ uploadedMs }) => uploadedMs >= beforeMs);
  }
}
