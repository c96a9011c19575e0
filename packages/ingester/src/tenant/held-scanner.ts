import type {
  DigestTask,
  DuplicateTask,
  EncodedOutcome,
  EncodedStreams,
  LabelTask,
  MatchedRows,
  MatchTask,
  MinuteDigests,
  PlacedHashes,
  RowHashTask,
  RowMask,
  Scanner,
  ScanOptions,
  ScanPlan,
  ScanTask,
  SourceRef,
  StreamTask,
  VolumeTask,
} from "@skald/contracts";
import type { LocalRef } from "@skald/storage";
import type { Views } from "./views.js";

/** Scans what an ingester holds, for those who know heads by the view that names them. */
export class HeldScanner implements Scanner {
  readonly #scanner: Scanner<LocalRef>;
  readonly #views: Views;

  constructor(scanner: Scanner<LocalRef>, views: Views) {
    this.#scanner = scanner;
    this.#views = views;
  }

  async scan(task: ScanTask, options: ScanOptions): Promise<EncodedOutcome> {
    return this.#scanner.scan(this.#local(task), options);
  }

  async measure(task: ScanTask, options: ScanOptions): Promise<number> {
    return this.#scanner.measure(this.#local(task), options);
  }

  async volumes(task: VolumeTask, options: ScanOptions): Promise<EncodedOutcome> {
    const sources = task.sources.map((source) => ({ ...source, ref: this.#localRef(source.ref) }));
    return this.#scanner.volumes({ ...task, sources }, options);
  }

  async streams(task: StreamTask, options: ScanOptions): Promise<EncodedStreams> {
    const sources = task.sources.map((ref) => this.#localRef(ref));
    return this.#scanner.streams({ ...task, sources }, options);
  }

  async labels(task: LabelTask, options: ScanOptions): Promise<EncodedStreams> {
    const sources = task.sources.map((ref) => this.#localRef(ref));
    return this.#scanner.labels({ ...task, sources }, options);
  }

  async duplicates(task: DuplicateTask, options: ScanOptions): Promise<RowMask> {
    const newer = this.#localRef(task.newer);
    const older = task.older.map((ref) => this.#localRef(ref));
    return this.#scanner.duplicates({ ...task, newer, older }, options);
  }

  async matches(task: MatchTask, options: ScanOptions): Promise<MatchedRows> {
    const source = this.#localRef(task.source);
    return this.#scanner.matches({ ...task, source }, options);
  }

  async digests(task: DigestTask<SourceRef>, options: ScanOptions): Promise<MinuteDigests> {
    const sources = task.sources.map((ref) => this.#localRef(ref));
    return this.#scanner.digests({ ...task, sources }, options);
  }

  async rowHashes(task: RowHashTask<SourceRef>, options: ScanOptions): Promise<PlacedHashes> {
    const sources = task.sources.map((ref) => this.#localRef(ref));
    return this.#scanner.rowHashes({ ...task, sources }, options);
  }

  #local(task: ScanTask): ScanTask<ScanPlan, LocalRef> {
    const sources = task.sources.map((source) => ({ ...source, ref: this.#localRef(source.ref) }));
    return { ...task, sources };
  }

  #localRef(ref: SourceRef): LocalRef {
    return ref.kind === "head" ? this.#views.find(ref) : ref;
  }
}
