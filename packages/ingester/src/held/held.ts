import type {
  HeldChanges,
  HeldChangesRequest,
  Scanner,
  Selection,
  SelectRequest,
  SourceRef,
  WindowDigests,
} from "@skald/contracts";
import type { TimeRange } from "@skald/model";
import type { Sleep } from "@skald/runtime";
import { sourcesOf } from "@skald/scan";
import type { LocalSegments } from "../flush/local-segments.js";
import type { Recovery } from "../log/recovery.js";
import type { IngesterLimits } from "../settings/limits.js";
import type { Heads } from "../tenant/heads.js";
import { selectHeads } from "./selection.js";
import type { Views } from "./views.js";

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
