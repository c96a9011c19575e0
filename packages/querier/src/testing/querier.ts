import type { Catalog, CatalogRequest, HeldKind, HeldRows, Ingester } from "@skald/contracts";
import { dayNs, type SegmentRef, steadyClock, type TimeRange } from "@skald/model";
import { CountingCatalog, countDay } from "@skald/scan";
import { headWithin } from "@skald/scan/testing";
import {
  DayIndex,
  type DayView,
  dayView,
  editDay,
  type LocalRef,
  segmentKey,
} from "@skald/storage";
import { CorruptSegments } from "../find/corrupt-segments.js";
import { Querier, type QuerierDeps } from "../querier.js";
import { ReplicatedIngester } from "../replicas/replicated-ingester.js";
import { ingesterOf } from "./held-ingester.js";
import type { LocalScanner } from "./local-scanner.js";

function within<Ref extends LocalRef>(refs: readonly Ref[] = []) {
  return (request: TimeRange & { readonly tenant: string }) =>
    refs
      .filter(
        ({ tenant, minNs, maxNs }) =>
          tenant === request.tenant && minNs < request.toNs && maxNs >= request.fromNs,
      )
      .map((ref) => (ref.kind === "head" ? (headWithin(ref, request) as Ref) : ref))
      .filter((ref) => ref.kind === "segment" || ref.blocks.length > 0);
}

/** What each of several ingesters holds; `fail` throws where one is lost. */
export interface HeldReplica {
  readonly sources: readonly LocalRef[];
  readonly fail?: (call: string) => void;
}

export interface Replicas {
  readonly replicas: readonly HeldReplica[];
  readonly store: SegmentRef[];
  /** Receives each call that was answered; a scan has the name of its kind. */
  readonly onCall?: (name: string, message: unknown, options: unknown, answer: unknown) => void;
}

/** Three ingesters, of which one may be lost, and a store. */
export function replicatedQuerierOf(
  scanner: LocalScanner,
  { replicas, store, onCall = () => {} }: Replicas,
): Querier {
  const instances = replicas.map(({ sources, fail = () => {} }, i) => ({
    id: `i${i}`,
    zone: "",
    ingester: watched(ingesterOf(scanner, within(sources)), fail, onCall),
  }));
  const stored = within(store);
  return new Querier({
    ingester: new ReplicatedIngester({
      replicasOf: () => ({ instances, maxMissing: 1, byZone: false }),
      connect: ({ ingester }) => ingester,
      queryWithinMs: 0,
      clock: { elapsedMs: () => 0 },
      sleep: () => new Promise(() => {}),
    }),
    catalog: { list: async (request) => stored(request) },
    scanner,
    threads: scanner.threads,
    corrupt: new CorruptSegments({ clock: steadyClock, onFound: () => undefined }),
  });
}

function watched(
  ingester: Ingester,
  fail: (call: string) => void,
  onCall: NonNullable<Replicas["onCall"]>,
): HeldRows {
  return new Proxy(ingester, {
    get:
      (target, method: keyof Ingester) =>
      async (...given: unknown[]) => {
        const name = method === "run" ? (given[0] as HeldKind) : method;
        fail(name);
        const call = target[method] as (...args: unknown[]) => Promise<unknown>;
        const answer = await call(...given);
        onCall(name, given.at(-2), given.at(-1), answer);
        return answer;
      },
  });
}

/** An ingester and a store with given sources. */
export function querierOf(
  scanner: LocalScanner,
  sources: { readonly ingester?: readonly LocalRef[]; readonly store?: readonly SegmentRef[] },
  onList: (fresh: boolean) => void = () => {},
  {
    indexed = false,
    ...deps
  }: Pick<QuerierDeps, "deletes" | "found" | "growths" | "memory" | "small"> & {
    /** Whether the store has an index of most of its segments. */
    readonly indexed?: boolean;
  } = {},
): Querier {
  const stored = within(sources.store);
  const list = async (request: CatalogRequest) => {
    onList(request.maxAgeMs === 0);
    return stored(request);
  };
  const catalog: Catalog = indexed
    ? new CountingCatalog({
        catalog: {
          list: async (request) =>
            indexedDays(await list(request)).flatMap((day) => day.select(request)),
          days: async (request) => indexedDays(await list(request)),
        },
        countDay: async (task) => countDay(task, new DayIndex(task.image), { check: () => {} }),
      })
    : { list };
  return new Querier({
    ingester: ingesterOf(scanner, within(sources.ingester)),
    catalog,
    scanner,
    threads: scanner.threads,
    corrupt: new CorruptSegments({ clock: steadyClock, onFound: () => undefined }),
    ...deps,
  });
}

/** Every third segment is younger than the index of its day. */
function indexedDays(refs: readonly SegmentRef[]): DayView[] {
  const days = new Map<bigint, SegmentRef[]>();
  for (const ref of refs) {
    const baseNs = ref.minNs - (ref.minNs % dayNs);
    days.set(baseNs, [...(days.get(baseNs) ?? []), ref]);
  }
  return [...days].map(([baseNs, held]) => {
    const byKey = new Map(held.map((ref) => [segmentKey(ref), ref]));
    const add = held.filter((_, i) => i % 3 < 2).map((ref) => ({ ref, level: 0 }));
    const { image } = editDay({
      ...{ tenant: held[0]!.tenant, baseNs, base: undefined, add, remove: [], forget: [] },
      ...{ generation: 1, writtenMs: 1 },
    });
    const objects = [...byKey].map(([key, { sizeBytes }]) => ({ key, sizeBytes, modifiedMs: 0 }));
    return dayView(objects, new DayIndex(image), (key) => byKey.get(key)!.location);
  });
}
