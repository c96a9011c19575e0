import {
  type AnswerOf,
  type CallOptions,
  encodeOutcome,
  encodeStreams,
  encodeTexts,
  encodeVolumes,
  type ScanKind,
  type ScanTask,
  type SegmentScanner,
  type TaskOf,
} from "@skald/contracts";
import type { LeafPlan, LogPlan } from "@skald/logql";
import {
  BlockDigestCache,
  digestSources,
  findShared,
  measureScan,
  type OpenSource,
  openHead,
  placeHashes,
  refsOf,
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

  /** A structured clone of what goes in and out is what threads would get. */
  async run<K extends ScanKind>(
    kind: K,
    task: TaskOf<K, LocalRef>,
    { signal }: CallOptions,
  ): Promise<AnswerOf<K>> {
    const ids = refsOf<LocalRef>(task).map(({ id }) => id);
    this.jobs.push(`${kind} ${ids.join()}`);
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    this.onJob(kind);
    return structuredClone(this.#scans[kind](task, () => signal.throwIfAborted()));
  }

  close(): void {
    for (const { close } of this.#opened.values()) close();
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

  readonly #scans: {
    readonly [K in ScanKind]: (task: TaskOf<K, LocalRef>, check: () => void) => AnswerOf<K>;
  } = {
    scan: (task, check) =>
      encodeOutcome(
        "log" in task.plan
          ? scanLog(task as ScanTask<LogPlan, LocalRef>, this.#open, { check })
          : scanMetric(task as ScanTask<LeafPlan, LocalRef>, this.#open, { check }),
      ),
    measure: (task, check) => measureScan(task, this.#open, { check }),
    volumes: (task, check) => encodeVolumes(scanVolumes(task, this.#open, { check })),
    streams: (task, check) => encodeStreams(scanStreams(task, this.#open, check)),
    labels: (task, check) => encodeTexts(scanLabels(task, this.#open, check)),
    duplicates: (task, check) => {
      const [newer, ...older] = refsOf(task).map(this.#open) as [Source, ...Source[]];
      const { range } = task;
      return uniteMasks(
        older.map((source) => findShared([source, newer], { check, range, wantedFrom: 1 })[0]!),
      );
    },
    sharedRows: (task, check) => {
      const { sources: _, ...wanted } = task;
      return findShared(refsOf(task).map(this.#open), { check, ...wanted });
    },
    matches: (task, check) => {
      const { masks, rowCount } = scanMatches(task, this.#open, { check });
      return { mask: uniteMasks(masks), rowCount };
    },
    digests: (task, check) => digestSources(task, this.#open, { check }, new BlockDigestCache()),
    rowHashes: (task, check) => placeHashes(task, this.#open, { check }),
  };
}
