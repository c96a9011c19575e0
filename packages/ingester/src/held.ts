import type {
  AnswerOf,
  HeadRef,
  HeldChanges,
  HeldChangesRequest,
  HeldKind,
  Scanner,
  ScanOptions,
  Selection,
  SelectRequest,
  SourceRef,
  TaskOf,
  WindowDigests,
} from "@skald/contracts";
import { notFound, type SegmentRef, type SteadyClock, type TimeRange } from "@skald/model";
import type { Sleep } from "@skald/runtime";
import { refsOf, sourcesOf, withRefs } from "@skald/scan";
import { type HeadView, type LocalRef, shareTexts } from "@skald/storage";
import type { LocalSegments } from "./flush/local-segments.js";
import type { Head } from "./head/head.js";
import type { Recovery } from "./log/recovery.js";
import type { IngesterLimits } from "./settings/options.js";
import type { Heads } from "./tenant/heads.js";
import type { Tenant } from "./tenant/tenant.js";

export interface HeldDependencies {
  readonly heads: Heads;
  readonly segments: LocalSegments;
  readonly views: Views;
  readonly scanner: Scanner;
  readonly recovery: Recovery;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  /** How long a query waits for what earlier processes left, ms. */
  readonly maxReplayWaitMs: number;
  readonly sleep: Sleep;
  /** Throws `unavailable` where the ingester has not begun, or has ended. */
  readonly assertReadable: () => void;
}

/** Memory of heads whose rows are hashed while somebody waits for what was selected. */
const maxComparedBytes = 8 * 1024 * 1024;

/** What an ingester holds, in heads and in local segments, as queries see it: they wait for what earlier processes left. */
export class Held {
  readonly #deps: HeldDependencies;

  constructor(deps: HeldDependencies) {
    this.#deps = deps;
  }

  /**
   * The time of the oldest row that is held, or was so lately that listings of the store may lack it, ns since the epoch: 0 while that is not
   * known, undefined when there is none.
   */
  oldestNs(): bigint | undefined {
    if (!this.#deps.recovery.isDone) return 0n;
    const segments = this.#deps.segments.all().map(({ ref }) => ref.minNs);
    const others = [this.#deps.heads.oldestNs(), this.#deps.segments.dropped.oldestNs()];
    return [...segments, ...others.filter((ns) => ns !== undefined)].reduce<bigint | undefined>(
      (oldest, ns) => (oldest === undefined || ns < oldest ? ns : oldest),
      undefined,
    );
  }

  /** Whether rows may be here that the store does not have; also true of a stopped one. */
  get holdsRows(): boolean {
    if (!this.#deps.recovery.isDone || this.#deps.heads.oldestNs() !== undefined) return true;
    return this.#deps.segments.all().some(({ uploadedMs }) => uploadedMs === undefined);
  }

  async select(
    request: SelectRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<Selection> {
    await this.#readable(signal);
    const tenant = this.#deps.heads.find(request.tenant);
    const heads = tenant === undefined ? [] : selectHeads(request, tenant);
    const segments = this.#deps.segments.select(request.tenant, request.fromNs, request.toNs);
    const { refs, ...view } = this.#deps.views.open(heads, segments);
    const graceMs = this.#deps.limitsOf(request.tenant).creation_grace_period;
    const completeFromNs = this.#deps.segments.completeFromNs(request.tenant, graceMs);
    const storedAgoMs = this.#deps.segments.dropped.storedAgoMs(request.tenant);
    const found = {
      ...{ ...view, sources: [...segments, ...refs], completeFromNs },
      ...(storedAgoMs === undefined ? {} : { storedAgoMs }),
    };
    const windows = await this.#compare(request, found.sources, signal);
    if (signal?.aborted === true && view.view !== undefined) this.#deps.views.release(view.view);
    signal?.throwIfAborted();
    return windows === undefined ? found : { ...found, compared: { windows } };
  }

  /** Digests of what was selected; undefined where they are not wished for, or are not little work. */
  async #compare(
    { compare, share, matchers }: SelectRequest,
    sources: readonly SourceRef[],
    signal: AbortSignal = new AbortController().signal,
  ): Promise<WindowDigests[] | undefined> {
    if (compare === undefined || share === undefined || sources.length === 0) return undefined;
    const headBytes = sources.map((ref) => (ref.kind === "head" ? ref.sizeBytes : 0));
    if (headBytes.reduce((sum, bytes) => sum + bytes, 0) > maxComparedBytes) return undefined;
    const asked = sourcesOf(sources);
    const digest = async ({ fromNs, toNs }: TimeRange) => {
      const task = { sources: asked, matchers, fromNs, toNs, minutesEach: compare.minutesEach };
      const digests = await this.#deps.scanner.run("digests", task, { signal, share });
      return { fromNs, toNs, digests, sources: sources.length };
    };
    const isHeld = ({ fromNs, toNs }: TimeRange) =>
      sources.some(({ minNs, maxNs }) => minNs < toNs && maxNs >= fromNs);
    // Whoever needs them asks again.
    return Promise.all(compare.windows.filter(isHeld).map(digest)).catch(() => undefined);
  }

  async changes(
    { tenant, spans }: HeldChangesRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<HeldChanges> {
    await this.#readable(signal);
    const table = this.#deps.heads.find(tenant)?.changes;
    const token = table?.token ?? this.#deps.heads.untouched;
    return {
      spans: spans.map(({ since, ...span }) => ({
        token,
        changed: since === token ? [] : (table?.since(since, span) ?? [span]),
      })),
    };
  }

  /** Waits until what earlier processes left can be queried. */
  async #readable(signal: AbortSignal | undefined): Promise<void> {
    this.#deps.assertReadable();
    if (this.#deps.recovery.isDone) return;
    const { recovery, maxReplayWaitMs, sleep } = this.#deps;
    await recovery.wait(maxReplayWaitMs, signal, sleep);
    this.#deps.assertReadable();
  }
}

/** Scans what an ingester holds. Callers name a head by the view that they selected. */
export class HeldScanner implements Scanner {
  readonly #scanner: Scanner<LocalRef>;
  readonly #views: Views;

  constructor(scanner: Scanner<LocalRef>, views: Views) {
    this.#scanner = scanner;
    this.#views = views;
  }

  async run<K extends HeldKind>(
    kind: K,
    task: TaskOf<K>,
    options: ScanOptions,
  ): Promise<AnswerOf<K>> {
    const refs = refsOf<SourceRef>(task).map((ref) => this.#localRef(ref));
    return this.#scanner.run(kind, withRefs<K, LocalRef>(task, refs), options);
  }

  #localRef(ref: SourceRef): LocalRef {
    return ref.kind === "head" ? this.#views.find(ref) : ref;
  }
}

/**
 * The unsealed heads that hold rows of the streams in the range at this moment, with their matching streams. Taken in
 * one go with the local segments, so a head that is being sealed is there either as head or as segment, under one id.
 */
export function selectHeads(request: SelectRequest, tenant: Tenant): HeadView[] {
  const found: HeadView[] = [];
  let matched: Uint32Array | undefined;
  for (const head of tenant.unsealed()) {
    const blocks = head.view(timeIn(head, request.fromNs), timeIn(head, request.toNs));
    if (blocks.length === 0) continue;
    matched ??= tenant.matchStreams(request.matchers);
    const streams = matched.filter((stream) => head.chains.has(stream));
    if (streams.length === 0) continue;
    head.viewed = true;
    const { matchers } = request;
    found.push(viewOf(head, { blocks, streams, matchers, tenant }));
  }
  return found;
}

function viewOf(
  head: Head,
  {
    blocks,
    streams,
    matchers,
    tenant,
  }: Pick<HeadView, "blocks" | "streams" | "matchers"> & {
    tenant: Tenant;
  },
): HeadView {
  const { minTime, maxTime } = head.bounds();
  return {
    kind: "head",
    id: head.id,
    tenant: head.tenant,
    minNs: head.baseNs + BigInt(minTime),
    maxNs: head.baseNs + BigInt(maxTime),
    streams: shared(streams),
    texts: shareTexts(Array.from(streams, (stream) => tenant.streams.text(stream))),
    matchers,
    blocks,
  };
}

/** A time as ns since the start of the head's day; far away it is only roughly right, which is enough to compare. */
function timeIn(head: Head, ns: bigint): number {
  return Number(ns - head.baseNs);
}

/** The same in memory that crosses to a thread without a copy. */
function shared(numbers: Uint32Array): Uint32Array {
  const copy = new Uint32Array(new SharedArrayBuffer(numbers.byteLength));
  copy.set(numbers);
  return copy;
}

/** A view that nobody scanned for this long is forgotten: whoever selected it is gone. */
const maxIdleMs = 10 * 60_000;

interface View {
  readonly heads: ReadonlyMap<string, HeadView>;
  /** Ids. */
  readonly segments: ReadonlySet<string>;
  usedMs: number;
}

/** What queries selected: heads as they were, which another process may name, and segments whose files stay until the view is released. */
export class Views {
  readonly #clock: SteadyClock;
  readonly #views = new Map<string, View>();
  #opened = 0;

  constructor(clock: SteadyClock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#views.size;
  }

  /** Holds heads and segments under a new name; gives the heads as another process may know them. */
  open(
    heads: readonly HeadView[],
    segments: readonly SegmentRef[],
  ): { readonly view?: string; readonly refs: HeadRef[] } {
    if (heads.length + segments.length === 0) return { refs: [] };
    const view = `v${this.#opened++}`;
    this.#views.set(view, {
      heads: new Map(heads.map((head) => [head.id, head])),
      segments: new Set(segments.map(({ id }) => id)),
      usedMs: this.#clock.elapsedMs(),
    });
    return { view, refs: heads.map((head) => refOf(head, view)) };
  }

  /** The head of a view. Throws not_found when the view was released, or forgotten. */
  find({ view, id }: HeadRef): HeadView {
    const found = this.#views.get(view);
    const head = found?.heads.get(id);
    if (found === undefined || head === undefined) {
      throw notFound(`the view ${view} of head ${id} is gone; select again`);
    }
    found.usedMs = this.#clock.elapsedMs();
    return head;
  }

  /** Whether the file of a segment has to stay. */
  holds(segment: string): boolean {
    return [...this.#views.values()].some(({ segments }) => segments.has(segment));
  }

  release(view: string): void {
    this.#views.delete(view);
  }

  /** Releases views that were left behind. */
  sweep(): void {
    const oldest = this.#clock.elapsedMs() - maxIdleMs;
    for (const [name, { usedMs }] of this.#views) if (usedMs < oldest) this.release(name);
  }
}

function refOf({ id, tenant, minNs, maxNs, blocks }: HeadView, view: string): HeadRef {
  const sizeBytes = blocks.reduce((sum, { memory }) => sum + memory.byteLength, 0);
  return { kind: "head", id, tenant, minNs, maxNs, view, sizeBytes };
}
