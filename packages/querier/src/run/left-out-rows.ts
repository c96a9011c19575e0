import type {
  QueryShare,
  RowMask,
  Scanner,
  SegmentScanner,
  SourceRef,
  StreamMinutes,
  TaskSource,
} from "@skald/contracts";
import type { SegmentRef, TimeRange } from "@skald/model";
import { emptyMask, sourcesOf, uniteMasks } from "@skald/scan";
import type {
  FoundSource,
  MeetingSegments,
  PlannedSource,
  ReplicaGroup,
} from "../find/order-sources.js";
import { type LeftOut, ReplicaAgreement } from "../replicas/agreement.js";
import { rawBytes } from "./cut-tasks.js";

/** Segments that are compared by more than one thread. */
const minShared = 64;

interface LeftOutOptions {
  readonly scanners: Scanners;
  /** Threads that scan at the same time. */
  readonly threads: number;
  /** Whose query it is, and what it costs by now. */
  readonly share: () => QueryShare;
}

/** Finds the rows that one query leaves out of its sources: what others have too, and what is deleted. */
export class LeftOutRows {
  readonly #scanners: Scanners;
  readonly #threads: number;
  readonly #share: () => QueryShare;
  readonly #masks = new Map<PlannedSource, Promise<RowMask>>();
  readonly #shared = new Map<MeetingSegments, Promise<readonly RowMask[]>>();
  readonly #agreements = new Map<ReplicaGroup, ReplicaAgreement>();

  constructor({ scanners, threads, share }: LeftOutOptions) {
    this.#scanners = scanners;
    this.#threads = threads;
    this.#share = share;
  }

  /** What other places have too; undefined where there are none. */
  async replicated(source: PlannedSource, signal: AbortSignal): Promise<LeftOut | undefined> {
    const { replicas } = source;
    if (replicas === undefined) return undefined;
    let agreement = this.#agreements.get(replicas);
    if (agreement === undefined) {
      agreement = new ReplicaAgreement(replicas, this.#agreementCalls(signal));
      this.#agreements.set(replicas, agreement);
    }
    return agreement.leaveOut(source);
  }

  /** Rows of a source that older ones have, or that are deleted. Found out once: parts of a source and several leaves ask for the same. */
  maskOf(source: PlannedSource, range: TimeRange, signal: AbortSignal): Promise<RowMask> {
    const known = this.#masks.get(source);
    if (known !== undefined) return known;
    const parts = [
      this.#duplicatesOf(source, range, signal),
      this.#deletedOf(source, range, signal),
    ];
    const finding = Promise.all(parts).then(uniteMasks);
    this.#masks.set(source, finding);
    return finding;
  }

  #agreementCalls(signal: AbortSignal) {
    const options = { signal, share: this.#share() };
    const scannerOf = ([first]: readonly FoundSource[]): Scanner =>
      this.#scanners[first?.side ?? "store"];
    return {
      digests: (
        sources: readonly FoundSource[],
        { fromNs, toNs, matchers }: ReplicaGroup,
        minutesEach: number,
      ) => {
        const task = { sources: namesOf(sources), matchers, fromNs, toNs, minutesEach };
        return scannerOf(sources).run("digests", task, options);
      },
      rowHashes: (
        sources: readonly FoundSource[],
        wanted: StreamMinutes,
        { fromNs, toNs }: ReplicaGroup,
      ) => {
        const task = { sources: namesOf(sources), wanted, fromNs, toNs };
        return scannerOf(sources).run("rowHashes", task, options);
      },
    };
  }

  async #duplicatesOf(
    source: PlannedSource,
    range: TimeRange,
    signal: AbortSignal,
  ): Promise<RowMask> {
    const shared = await this.#sharedOf(source, signal);
    const { older } = source;
    if (older.length === 0) return shared;
    // An ingester can read the store; nobody else can read what an ingester holds.
    const sides = [source, ...older].map(({ side }) => side);
    const scanner: Scanner = this.#scanners[sides.includes("ingester") ? "ingester" : "store"];
    const task = { sources: namesOf([source, ...older]), range };
    const mask = await scanner.run("duplicates", task, { signal, share: this.#share() });
    return uniteMasks([shared, mask]);
  }

  /** Found out once for all segments of a group, however many of them are looked at. */
  async #sharedOf({ ref, meets }: PlannedSource, signal: AbortSignal): Promise<RowMask> {
    if (meets === undefined) return emptyMask;
    const { sources, wantedFrom } = meets;
    let finding = this.#shared.get(meets);
    if (finding === undefined) {
      finding = this.#findShared(meets, signal);
      this.#shared.set(meets, finding);
    }
    return (await finding)[sources.indexOf(ref as SegmentRef) - wantedFrom] ?? emptyMask;
  }

  /** Many segments are compared by several threads, each some of the streams. */
  async #findShared(meets: MeetingSegments, signal: AbortSignal): Promise<readonly RowMask[]> {
    const count = meets.sources.length < minShared ? 1 : this.#threads;
    const parts = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        this.#scanners.store.run(
          "sharedRows",
          {
            sources: sourcesOf(meets.sources),
            wantedFrom: meets.wantedFrom,
            part: { index, count },
          },
          { signal, share: this.#share() },
        ),
      ),
    );
    return parts[0]!.map((_, i) => uniteMasks(parts.map((masks) => masks[i] ?? emptyMask)));
  }

  async #deletedOf(source: PlannedSource, range: TimeRange, signal: AbortSignal): Promise<RowMask> {
    const { side, deleted: filters = [] } = source;
    if (filters.length === 0) return emptyMask;
    const isRead = filters.some(({ log }) => log.stages.length > 0);
    const share = this.#share();
    // Rows of a segment are found once for all queries, so that this one may read more than it asked for.
    const cost = isRead ? Math.max(share.cost, rawBytes(source.ref)) : share.cost;
    const options = { signal, share: { ...share, cost } };
    const task = { sources: namesOf([source]), filters, range };
    const scanner: Scanner = this.#scanners[side];
    return (await scanner.run("matches", task, options)).mask;
  }
}

/** Found sources as a task names them. */
function namesOf(sources: readonly FoundSource[]): TaskSource[] {
  return sources.map(({ ref }) => ({ ref }));
}

/** Who scans the sources of a side. Segments that are nobody's own can be read on the side of the store, wherever they are. */
export type Scanners = Readonly<
  Record<"ingester", Scanner> & Record<"store", SegmentScanner<SourceRef>>
>;
