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
/** Codes of errors that are no damage: the file cannot be read now, or a newer version wrote it. */
const otherCodes: readonly ErrorCode[] = ["unavailable", "newer_version"];

/** A sealed file on this machine. */
export interface LocalSegment {
  readonly ref: SegmentRef;
  readonly path: string;
  /** By the steady clock. */
  readonly sealedMs: number;
  /** Last log file with rows of it. The local copy outlives that file, so that replay knows which rows are sealed. */
  lastWalFile: number;
  /** End of the upload by the steady clock; undefined before. */
  uploadedMs: number | undefined;
  /** Whether the store may have it, because this process or maybe an earlier one began an upload. */
  mayBeStored: boolean;
  /** Whether new queries read its rows from the store: it stays for views that have it only. */
  isLeaving: boolean;
  /** The merged segment that has its rows: this one stays for queries that selected it, and for the log. */
  replacedBy?: LocalSegment;
}

export interface LocalSegmentsOptions {
  readonly dataDir: string;
  readonly log: Logger;
  readonly clock: SteadyClock;
  /** Dates the files of earlier processes. */
  readonly timeOfDay: Clock;
  /** Time that a copy stays after its upload. */
  readonly retainMs: number;
  /** Is called with each file that was deleted. */
  readonly onDropped: ((path: string) => void) | undefined;
}

/**
 * The segments on the local disk, as `<dir>/<tenant>/<id>.parquet`. An empty file `<id>.uploaded` marks an uploaded segment, so
 * that no restart uploads again what the compactor has merged and deleted since. `<id>.uploading` marks a segment whose
 * upload was begun, and `<dir>/uploads.marked` says that all such segments have that mark. The index of a merged segment
 * names its inputs, and it replaces them as soon as it exists.
 */
export class LocalSegments {
  readonly dropped: DroppedCopies;
  readonly placed: PlacedFiles;
  readonly #options: LocalSegmentsOptions;
  readonly #dir: string;
  /** Exists since a process that marks uploads has opened the directory. */
  readonly #markedPath: string;
  /** Start of this process, and by tenant the latest row of a segment that left; ns since the epoch. */
  readonly #startNs: bigint;
  readonly #droppedNs = new Map<string, bigint>();
  readonly #byTenant = new Map<string, Map<string, LocalSegment>>();

  constructor(options: LocalSegmentsOptions) {
    this.#options = options;
    this.#dir = join(options.dataDir, "segments");
    this.#markedPath = join(this.#dir, "uploads.marked");
    this.#startNs = BigInt(Math.ceil(options.timeOfDay.nowMs())) * nsPerMs;
    this.dropped = new DroppedCopies(options);
    this.placed = new PlacedFiles(this.#dir);
  }

  /**
   * Finds the files of earlier processes; moves corrupt ones into quarantine and returns their number. Throws
   * `newer_version`, with nothing changed, when a newer version wrote one of them.
   */
  async open(): Promise<{ corrupt: number }> {
    await makeLastingDirectory(this.#dir);
    const entries = await readdir(this.#dir, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    const paths = new Set(files.map((entry) => join(entry.parentPath, entry.name)));
    // A killed process may have placed files without a sync, and the log is cut behind them too.
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

  /** An earlier version did not mark the uploads that it had begun. */
  async #markAll(): Promise<void> {
    const waiting = this.files().filter(({ uploadedMs }) => uploadedMs === undefined);
    for (const segment of waiting) await this.markUploading(segment);
    await this.placed.sync();
    await writeFile(this.#markedPath, "");
  }

  /** Path of the segment of a head; creates its directory. */
  async pathOf(head: Pick<Head, "tenant" | "id">): Promise<string> {
    const path = join(this.#dir, tenantDir(head.tenant), head.id + segmentSuffix);
    await mkdir(dirname(path), { recursive: true });
    return path;
  }

  add(head: Head, sealed: SealedSegment, path: string): LocalSegment {
    return this.#add({
      ref: refOf(head.tenant, head.id, path, sealed),
      path,
      sealedMs: this.#options.clock.elapsedMs(),
      lastWalFile: head.lastFile,
      uploadedMs: undefined,
      mayBeStored: false,
      isLeaving: false,
    });
  }

  /** Replaces segments by one that has their rows; it is as old as the oldest of them. */
  replace(
    inputs: readonly LocalSegment[],
    by: { readonly id: string; readonly sealed: SealedSegment; readonly path: string },
  ): void {
    const { tenant } = (inputs[0] as LocalSegment).ref;
    const segment = this.#add({
      ref: refOf(tenant, by.id, by.path, by.sealed),
      path: by.path,
      sealedMs: Math.min(...inputs.map(({ sealedMs }) => sealedMs)),
      lastWalFile: Math.max(...inputs.map(({ lastWalFile }) => lastWalFile)),
      uploadedMs: undefined,
      mayBeStored: false,
      isLeaving: false,
    });
    for (const input of inputs) this.#link(input, segment);
  }

  /** Finds any segment, also one that was replaced. */
  get(tenant: string, id: string): LocalSegment | undefined {
    return this.#byTenant.get(tenant)?.get(id);
  }

  /** The segments that were not replaced: each row is in one of them. */
  all(): LocalSegment[] {
    return this.files().filter(isCurrent);
  }

  /** All segments, also those that were replaced. */
  files(): LocalSegment[] {
    return [...this.#byTenant.values()].flatMap((segments) => [...segments.values()]);
  }

  /** The segments of a tenant that were not replaced. */
  of(tenant: string): LocalSegment[] {
    return [...(this.#byTenant.get(tenant)?.values() ?? [])].filter(isCurrent);
  }

  /** Segments that may have rows in `[fromNs, toNs)`, ns since the epoch; apart from others, those that are leaving. */
  select(
    tenant: string,
    fromNs: bigint,
    toNs: bigint,
  ): { readonly staying: SegmentRef[]; readonly leaving: SegmentRef[] } {
    const found = this.of(tenant).filter(({ ref }) => ref.minNs < toNs && ref.maxNs >= fromNs);
    const refsOf = (segments: readonly LocalSegment[]) => segments.map(({ ref }) => ref);
    return {
      staying: refsOf(found.filter(({ isLeaving }) => !isLeaving)),
      leaving: refsOf(found.filter(({ isLeaving }) => isLeaving)),
    };
  }

  /**
   * Returns a time such that no row of that time or later ever left this disk, neither in this process nor in an
   * earlier one that accepted rows at most `graceMs` ahead of its clock.
   */
  completeFromNs(tenant: string, graceMs: number): bigint {
    const earlier = this.#startNs + BigInt(Math.ceil(graceMs)) * nsPerMs;
    const dropped = this.#droppedNs.get(tenant) ?? 0n;
    return dropped >= earlier ? dropped + 1n : earlier;
  }

  /** Marks that the store may have the segment; the mark survives a power cut once its name is synced. */
  async markUploading(segment: LocalSegment): Promise<void> {
    await writeFile(uploadingMarkerOf(segment.path), "");
    this.placed.note(segment.path);
    segment.mayBeStored = true;
  }

  /**
   * Marks durably that the store has the segment; the object may be merged and deleted there later.
   */
  async markUploaded(segment: LocalSegment): Promise<void> {
    // Inputs without the merged file that names them would count as not uploaded.
    for (const input of this.#inputsOf(segment)) await writeFile(markerOf(input.path), "");
    await writeFile(markerOf(segment.path), "");
    await this.placed.syncs.sync(dirname(segment.path));
    await rm(uploadingMarkerOf(segment.path), { force: true });
    segment.uploadedMs = this.#options.clock.elapsedMs();
  }

  /** Whether a local copy may be deleted: its inputs must be deleted first. */
  isLast(segment: LocalSegment): boolean {
    return this.#inputsOf(segment).length === 0;
  }

  /** Leaves a local copy out of new views. */
  leave(segment: LocalSegment): void {
    if (segment.isLeaving) return;
    segment.isLeaving = true;
    const { tenant, maxNs } = segment.ref;
    const { uploadedMs } = segment.replacedBy ?? segment;
    if (uploadedMs !== undefined) this.dropped.note(segment.ref, uploadedMs);
    if (isCurrent(segment) && maxNs > (this.#droppedNs.get(tenant) ?? 0n))
      this.#droppedNs.set(tenant, maxNs);
  }

  /** Deletes a local copy. */
  async drop(segment: LocalSegment): Promise<void> {
    this.leave(segment);
    const { tenant, id } = segment.ref;
    const segments = this.#byTenant.get(tenant);
    segments?.delete(id);
    if (segments?.size === 0) this.#byTenant.delete(tenant);
    await rm(segment.path, { force: true });
    this.#options.onDropped?.(segment.path);
    await rm(markerOf(segment.path), { force: true });
    await rm(uploadingMarkerOf(segment.path), { force: true });
  }

  #inputsOf(segment: LocalSegment): LocalSegment[] {
    const known = this.#byTenant.get(segment.ref.tenant)?.values() ?? [];
    return [...known].filter((one) => one.replacedBy === segment);
  }

  /** A segment that replaces another one also replaces the inputs of that one. */
  #link(input: LocalSegment | undefined, segment: LocalSegment): void {
    if (input === undefined || input === segment) return;
    const last = segment.replacedBy ?? segment;
    for (const one of this.#inputsOf(input)) one.replacedBy = last;
    input.replacedBy = last;
  }

  /** Adds a file of an earlier process; returns the error when it is damaged. */
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
      const nowMs = this.#options.clock.elapsedMs();
      const ageMs = Math.max(0, this.#options.timeOfDay.nowMs() - (await stat(path)).mtimeMs);
      const uploaded = paths.has(markerOf(path));
      const adopted = this.#add({
        ref: refOf(tenant, id, path, segment),
        path,
        sealedMs: nowMs - ageMs,
        lastWalFile: 0,
        uploadedMs: uploaded ? nowMs : undefined,
        isLeaving: false,
        mayBeStored: uploaded || paths.has(uploadingMarkerOf(path)) || !paths.has(this.#markedPath),
      });
      replaced.set(adopted, replacedBy(segment.image) ?? []);
      return undefined;
    } catch (error) {
      if (error instanceof SkaldError && !otherCodes.includes(error.code)) return error;
      throw error;
    }
  }

  #tenantOf(path: string): string {
    return tenantOf(relative(this.#dir, dirname(path)));
  }

  async #setAside(path: string, reason: SkaldError): Promise<void> {
    const tenant = this.#tenantOf(path);
    const aside = join(this.#options.dataDir, "quarantine", relative(this.#dir, path));
    try {
      await makeLastingDirectory(dirname(aside));
      await rename(path, aside);
      // The new name must be durable before the old one is gone.
      await this.placed.syncs.sync(dirname(aside));
      this.#options.log.error("a local segment is corrupt; set aside", {
        tenant,
        path: aside,
        error: reason,
      });
    } catch (error) {
      const facts = { tenant, path, error: reason, cause: error };
      this.#options.log.error(
        "a local segment is corrupt, and cannot be set aside; left out",
        facts,
      );
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
 * Local copies that were dropped so soon after their upload that a listing of the store in use may lack them. Copies that an
 * earlier process dropped are unknown, except that they were stored before this process began.
 */
export class DroppedCopies {
  readonly #clock: SteadyClock;
  readonly #startMs: number;
  /** False when copies outlive every listing, and nothing needs to be remembered. */
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

  /** A listing that began less than this long ago has all dropped segments of a tenant; undefined when every listing has. */
  storedAgoMs(tenant: string): number | undefined {
    this.#forgetOld();
    const own = this.#dropped.filter((one) => one.tenant === tenant);
    const lastMs = Math.max(...own.map(({ uploadedMs }) => uploadedMs), this.#earlierMs);
    return Number.isFinite(lastMs) ? this.#clock.elapsedMs() - lastMs : undefined;
  }

  /** Time of the oldest row of these copies, ns since the epoch: 0 while it is unknown, undefined when there is none. */
  oldestNs(): bigint | undefined {
    if (Number.isFinite(this.#earlierMs)) return 0n;
    this.#forgetOld();
    const times = this.#dropped.map(({ minNs }) => minNs);
    return times.length === 0 ? undefined : times.reduce((a, b) => (b < a ? b : a));
  }

  /** Time until which earlier processes may have stored what they dropped; -Infinity once every listing is younger. */
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
