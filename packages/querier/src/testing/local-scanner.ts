import type { AnswerOf, CallOptions, ScanKind, SegmentScanner, TaskOf } from "@skald/contracts";
import { type OpenSource, openHead, refsOf, type Source, segmentSource } from "@skald/scan";
import { BlockDigestCache, scanHere } from "@skald/scan/testing";
import { type LocalRef, openSegmentFile } from "@skald/storage";

/** Runs scans in this thread, each in a turn of its own, and writes down what it was asked. */
export class LocalScanner implements SegmentScanner<LocalRef> {
  readonly threads: number;
  readonly jobs: string[] = [];
  /** Called before each job; may throw. */
  onJob: (name: string) => void = () => {};
  readonly #digests = new BlockDigestCache();
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
    const context = { open: this.#open, check: () => signal.throwIfAborted() };
    return structuredClone(scanHere(kind, task, { ...context, digests: this.#digests }));
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
}
