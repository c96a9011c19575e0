import { randomBytes } from "node:crypto";
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
import { type Sleep, sleep } from "@skald/runtime";
import { refsOf, sourcesOf, withRefs } from "@skald/scan";
import { type HeadView, type LocalRef, type SharedStreams, shareTexts } from "@skald/storage";
import type { LocalSegments } from "./flush/local-segments.js";
import type { Head } from "./head/head.js";
import type { Recovery } from "./log/recovery.js";
import type { IngesterLimits, IngesterOptions } from "./settings/options.js";
import type { Heads } from "./tenant/heads.js";
import type { NumberedStreams } from "./tenant/numbered-streams.js";
import type { Tenant } from "./tenant/tenant.js";

export interface HeldDependencies {
  readonly options: IngesterOptions;
  readonly heads: Heads;
  readonly segments: LocalSegments;
  readonly scanner: Scanner<LocalRef>;
  readonly recovery: Recovery;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
  /** Throws `unavailable` before the start and after the end of the ingester. */
  readonly assertReadable: () => void;
}

/** Only up to this size of heads are rows hashed while a client waits for a selection. */
const maxComparedBytes = 64 * 1024 * 1024;

/**
 * The rows of an ingester, in heads and in local segments, as queries see them. Queries wait until the log of earlier
 * processes is replayed.
 */
export class Held implements Scanner {
  readonly views: Views;
  readonly #deps: HeldDependencies;

  constructor(deps: HeldDependencies) {
    this.#deps = deps;
    this.views = new Views(deps.clock);
  }

  /**
   * The time of the oldest row that is here, or was here so recently that listings of the store may lack it; ns since the
   * epoch. 0 while it is unknown, undefined when there is no such row.
   */
  oldestNs(): bigint | undefined {
    const { recovery, segments, heads } = this.#deps;
    if (!recovery.isDone) return 0n;
    const times = segments.all().map(({ ref }): bigint | undefined => ref.minNs);
    return [...times, heads.oldestNs(), segments.dropped.oldestNs()].reduce((oldest, ns) =>
      oldest === undefined || (ns !== undefined && ns < oldest) ? ns : oldest,
    );
  }

  /** Whether there may be rows that the store does not have; also valid after a stop. */
  get holdsRows(): boolean {
    const { recovery, segments, heads } = this.#deps;
    if (!recovery.isDone || heads.oldestNs() !== undefined) return true;
    return segments.all().some(({ uploadedMs }) => uploadedMs === undefined);
  }

  /** Scans selected sources. Callers name a head by the view that they selected. */
  async run<K extends HeldKind>(
    kind: K,
    task: TaskOf<K>,
    options: ScanOptions,
  ): Promise<AnswerOf<K>> {
    const refs = refsOf<SourceRef>(task).map((ref) =>
      ref.kind === "head" ? this.views.find(ref) : ref,
    );
    return this.#deps.scanner.run(kind, withRefs<K, LocalRef>(task, refs), options);
  }

  async select(
    request: SelectRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<Selection> {
    await this.#readable(signal);
    const { segments, heads, limitsOf } = this.#deps;
    const { tenant: name, fromNs, toNs } = request;
    const tenant = heads.find(name);
    const { staying, leaving } = segments.select(name, fromNs, toNs);
    const { refs, ...view } = this.views.open(
      tenant === undefined ? [] : selectHeads(request, tenant),
      staying,
    );
    const sources = [...staying, ...(request.withLeaving === true ? leaving : []), ...refs];
    const completeFromNs = segments.completeFromNs(name, limitsOf(name).creation_grace_period);
    const storedAgoMs = segments.dropped.storedAgoMs(name);
    const windows = await this.#compare(request, sources, signal);
    if (signal?.aborted === true && view.view !== undefined) this.views.release(view.view);
    signal?.throwIfAborted();
    return {
      ...view,
      sources,
      completeFromNs,
      ...(storedAgoMs === undefined ? {} : { storedAgoMs }),
      ...(windows === undefined ? {} : { compared: { windows } }),
    };
  }

  /** Digests of the selected sources; undefined when the request wants none, or when they are much work. */
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
      const digests = await this.run("digests", task, { signal, share });
      return { fromNs, toNs, digests, sources: sources.length };
    };
    const isHeld = ({ fromNs, toNs }: TimeRange) =>
      sources.some(({ minNs, maxNs }) => minNs < toNs && maxNs >= fromNs);
    // The caller asks again when it needs them.
    return Promise.all(compare.windows.filter(isHeld).map(digest)).catch(() => undefined);
  }

  async changes(
    { tenant, spans }: HeldChangesRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<HeldChanges> {
    await this.#readable(signal);
    const { heads } = this.#deps;
    const table = heads.find(tenant)?.changes;
    const token = table?.token ?? heads.untouched;
    return {
      spans: spans.map(({ since, ...span }) => ({
        token,
        changed: since === token ? [] : (table?.since(since, span) ?? [span]),
      })),
    };
  }

  /** Waits until the log of earlier processes is replayed. */
  async #readable(signal: AbortSignal | undefined): Promise<void> {
    const { recovery, options, assertReadable } = this.#deps;
    assertReadable();
    if (recovery.isDone) return;
    await recovery.wait(options.bounds.maxReplayWaitMs, signal, this.#deps.sleep ?? sleep);
    assertReadable();
  }
}

/**
 * The unsealed heads that hold rows of the streams in the range at this moment, with their matching streams. The caller
 * selects local segments in the same turn, so a head that is being sealed shows as head or as segment, under one id.
 */
function selectHeads(request: SelectRequest, tenant: Tenant): HeadView[] {
  const { matchers } = request;
  const found: HeadView[] = [];
  let matched: Uint32Array | undefined;
  for (const head of tenant.unsealed()) {
    const { id, baseNs } = head;
    // Far from the day of the head the numbers are inexact, which is enough to compare.
    const blocks = head.view(Number(request.fromNs - baseNs), Number(request.toNs - baseNs));
    if (blocks.length === 0) continue;
    matched ??= tenant.streams.match(matchers);
    const { streams, texts } = selectStreams(head, matched, tenant.streams);
    if (streams.length === 0) continue;
    head.viewed = true;
    const { minTime, maxTime } = head.bounds();
    found.push({
      kind: "head",
      id,
      tenant: tenant.name,
      minNs: baseNs + BigInt(minTime),
      maxNs: baseNs + BigInt(maxTime),
      streams,
      texts,
      matchers,
      blocks,
      sizeBytes: head.sizeOf(streams),
    });
  }
  return found;
}

/** The matching streams that a head has, which queries for the same ones share. */
function selectStreams(head: Head, matched: Uint32Array, table: NumberedStreams): SharedStreams {
  const { streamCount } = head.chains;
  const last = head.selected;
  if (last?.matched === matched && last.streamCount === streamCount) return last;
  const streams = shared(matched.filter((stream) => head.chains.has(stream)));
  const texts = shareTexts(Array.from(streams, (stream) => table.text(stream)));
  head.selected = { matched, streamCount, streams, texts };
  return head.selected;
}

/** A copy in memory that another thread gets without a further copy. */
function shared(numbers: Uint32Array): Uint32Array {
  const copy = new Uint32Array(new SharedArrayBuffer(numbers.byteLength));
  copy.set(numbers);
  return copy;
}

/** A view that nobody scanned for this long is released, because its owner is gone. */
const maxIdleMs = 10 * 60_000;

interface View {
  readonly heads: ReadonlyMap<string, HeadView>;
  /** Ids. */
  readonly segments: ReadonlySet<string>;
  usedMs: number;
}

/**
 * The selections of queries: heads as they were, which other processes name by view and id, and segments, whose files stay
 * until the view is released.
 */
export class Views {
  readonly #clock: SteadyClock;
  readonly #views = new Map<string, View>();
  /** Heads keep their ids over a restart, so that a view of an earlier process must have another name. */
  readonly #life = randomBytes(4).toString("hex");
  #opened = 0;

  constructor(clock: SteadyClock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#views.size;
  }

  /** Keeps heads and segments under a new name; returns references to the heads for other processes. */
  open(
    heads: readonly HeadView[],
    segments: readonly SegmentRef[],
  ): { readonly view?: string; readonly refs: HeadRef[] } {
    if (heads.length + segments.length === 0) return { refs: [] };
    const view = `${this.#life}-${this.#opened++}`;
    this.#views.set(view, {
      heads: new Map(heads.map((head) => [head.id, head])),
      segments: new Set(segments.map(({ id }) => id)),
      usedMs: this.#clock.elapsedMs(),
    });
    const refs = heads.map(
      ({ id, tenant, minNs, maxNs, sizeBytes }): HeadRef => ({
        ...{ kind: "head", id, tenant, minNs, maxNs, view, sizeBytes },
      }),
    );
    return { view, refs };
  }

  /** Returns the head of a view. Throws not_found when the view was released. */
  find({ view, id }: HeadRef): HeadView {
    const found = this.#views.get(view);
    const head = found?.heads.get(id);
    if (found === undefined || head === undefined) {
      throw notFound(`the view ${view} of head ${id} is gone; select again`);
    }
    found.usedMs = this.#clock.elapsedMs();
    return head;
  }

  /** Whether the file of a segment must stay. */
  holds(segment: string): boolean {
    return [...this.#views.values()].some(({ segments }) => segments.has(segment));
  }

  release(view: string): void {
    this.#views.delete(view);
  }

  /** Releases abandoned views. */
  sweep(): void {
    const oldest = this.#clock.elapsedMs() - maxIdleMs;
    for (const [name, { usedMs }] of this.#views) if (usedMs < oldest) this.release(name);
  }
}
