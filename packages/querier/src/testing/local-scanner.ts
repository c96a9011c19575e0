import {
  type CallOptions,
  type DigestTask,
  type DuplicateTask,
  type EncodedOutcome,
  type EncodedStreams,
  encodeOutcome,
  encodeStreams,
  encodeTexts,
  encodeVolumes,
  type LabelTask,
  type MatchTask,
  type RowHashTask,
  type ScanPlan,
  type ScanTask,
  type SegmentScanner,
  type SharedTask,
  type StreamTask,
  type VolumeTask,
} from "@skald/contracts";
import type { LeafPlan, LogPlan } from "@skald/logql";
import {
  BlockDigestCache,
  digestSources,
  findDuplicates,
  findShared,
  measureScan,
  type OpenSource,
  openHead,
  placeHashes,
  type Source,
  scanLabels,
  scanLog,
  scanMatches,
  scanMetric,
  scanStreams,
  scanVolumes,
  segmentSource,
  uniteMasks,
} from "@skald/scan";
import { type LocalRef, openSegmentFile } from "@skald/storage";

/** Runs scans in this thread, each in a turn of its own, and writes down what it was asked. */
export class LocalScanner implements SegmentScanner<LocalRef> {
  readonly threads: number;
  readonly jobs: string[] = [];
  /** Called before each job; may throw. */
  onJob: (name: string) => void = () => {};
  readonly #opened = new Map<string, { source: Source; close: () => void }>();

  constructor(threads = 2) {
    this.threads = threads;
  }

  scan(task: ScanTask<ScanPlan, LocalRef>, options: CallOptions): Promise<EncodedOutcome> {
    const refs = task.sources.map(({ ref }) => ref);
    const run = (check: () => void) =>
      encodeOutcome(
        "log" in task.plan
          ? scanLog(task as ScanTask<LogPlan, LocalRef>, this.#open, { check })
          : scanMetric(task as ScanTask<LeafPlan, LocalRef>, this.#open, { check }),
      );
    const name = "log" in task.plan ? "scan_log" : "scan_metric";
    return this.#run(name, refs, options, run);
  }

  measure(task: ScanTask<ScanPlan, LocalRef>, options: CallOptions): Promise<number> {
    const refs = task.sources.map(({ ref }) => ref);
    return this.#run("measure", refs, options, (check) => measureScan(task, this.#open, { check }));
  }

  volumes(task: VolumeTask<LocalRef>, options: CallOptions): Promise<EncodedOutcome> {
    const refs = task.sources.map(({ ref }) => ref);
    return this.#run("volumes", refs, options, (check) =>
      encodeVolumes(scanVolumes(task, this.#open, { check })),
    );
  }

  streams(task: StreamTask<LocalRef>, options: CallOptions): Promise<EncodedStreams> {
    return this.#run("streams", task.sources, options, (check) =>
      encodeStreams(scanStreams(task, this.#open, check)),
    );
  }

  labels(task: LabelTask<LocalRef>, options: CallOptions): Promise<EncodedStreams> {
    return this.#run("labels", task.sources, options, (check) =>
      encodeTexts(scanLabels(task, this.#open, check)),
    );
  }

  duplicates({ newer, older, range }: DuplicateTask<LocalRef>, options: CallOptions) {
    return this.#run("duplicates", [newer, ...older], options, (check) =>
      uniteMasks(
        older.map((ref) => findDuplicates(this.#open(ref), this.#open(newer), { check, range })),
      ),
    );
  }

  sharedRows({ sources, ...wanted }: SharedTask<LocalRef>, options: CallOptions) {
    return this.#run("sharedRows", sources, options, (check) =>
      findShared(sources.map(this.#open), { check, ...wanted }),
    );
  }

  matches(task: MatchTask<LocalRef>, options: CallOptions) {
    return this.#run("matches", [task.source], options, (check) => {
      const { masks, rowCount } = scanMatches(task, this.#open, { check });
      return { mask: uniteMasks(masks), rowCount };
    });
  }

  digests(task: DigestTask<LocalRef>, options: CallOptions) {
    return this.#run("digests", task.sources, options, (check) =>
      digestSources(task, this.#open, { check }, new BlockDigestCache()),
    );
  }

  rowHashes(task: RowHashTask<LocalRef>, options: CallOptions) {
    return this.#run("row_hashes", task.sources, options, (check) =>
      placeHashes(task, this.#open, { check }),
    );
  }

  close(): void {
    for (const { close } of this.#opened.values()) close();
  }

  /** A structured clone of what goes in and out is what threads would get. */
  async #run<T>(
    name: string,
    refs: readonly LocalRef[],
    { signal }: CallOptions,
    work: (check: () => void) => T,
  ): Promise<T> {
    this.jobs.push(`${name} ${refs.map(({ id }) => id).join()}`);
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    this.onJob(name);
    return structuredClone(work(() => signal.throwIfAborted()));
  }

  readonly #open: OpenSource = (ref) => {
    if (ref.kind === "head") return openHead(ref);
    const known = this.#opened.get(ref.id);
    if (known !== undefined) return known.source;
    const { segment, close } = openSegmentFile(ref);
    const source = segmentSource(segment);
    this.#opened.set(ref.id, { source, close });
    return source;
  };
}
