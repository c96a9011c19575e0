import { join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "@jest/globals";
import type { LabelTask, ScanOptions, ScanPlan, ScanTask } from "@skald/contracts";
import { type SegmentRef, unavailable } from "@skald/model";
import type { JobContext, JobHandler } from "@skald/runtime";
import { type LocalRef, MemoryStore, type ObjectRange, SegmentCache } from "@skald/storage";
import { seededRandom } from "@skald/testkit";
import { scanJobs } from "../jobs.js";
import { ScanPool } from "../pool.js";
import { RemoteScanner } from "../remote-scanner.js";
import { makeDirectory, makeSegment, row } from "./sources.js";

const { signal } = new AbortController();
/** Of every call. */
export const options: ScanOptions = { signal, share: { tenant: "t", actors: [], cost: 0 } };
const plenty = { freeBytes: 1e9, totalBytes: 1e10 };

/** Three segments for the tests of a file, as files and as objects of a store whose reads are listed, and scanners of the store. */
export function remoteSegments() {
  const { path: directory, remove } = makeDirectory();
  const store = new MemoryStore();
  const state = {
    directory,
    store,
    files: [] as SegmentRef[],
    objects: [] as SegmentRef[],
    /** Since the test began. */
    reads: [] as (ObjectRange & { readonly key: string })[],
    isDown: false,
    disk: { ...plenty },
    setUp,
  };
  beforeAll(async () => {
    const rows = [makeRows(1, 12_000), makeRows(2, 9_000)] as const;
    // The third has rows of the first.
    const all = [...rows, rows[0].slice(0, 500)];
    const sizes = { rowsPerBlock: 400 };
    state.files = all.map((part, i) => makeSegment(directory, part, { id: `s${i}`, ...sizes }));
    state.objects = await Promise.all(state.files.map((ref) => putFile(store, ref)));
  });
  beforeEach(() => {
    Object.assign(state, { reads: [], isDown: false, disk: { ...plenty } });
  });
  afterAll(remove);

  let caches = 0;
  /** A scanner of the store, with a cache that is not open yet. */
  function setUp({ maxBytes = 1e9, name = `cache-${caches++}` } = {}) {
    const { pool, runs, images } = poolOf();
    const cache = new SegmentCache({
      directory: join(directory, name),
      storeName: "memory",
      disk: async () => state.disk,
      maxBytes,
      onDropped: (path) => pool.forget(path),
      store: {
        list: (prefix, call) => store.list(prefix, call),
        getRange: async (key, asked, call) => {
          state.reads.push({ key, ...asked });
          if (state.isDown) throw unavailable("the store is down");
          return store.getRange(key, asked, call);
        },
      },
    });
    return {
      cache,
      pool,
      runs,
      images,
      name,
      scanner: new RemoteScanner({ scanner: pool, cache }),
    };
  }
  return state;
}

/** Puts a file into the store under its id. */
export async function putFile(store: MemoryStore, ref: SegmentRef): Promise<SegmentRef> {
  const path = ref.location.kind === "file" ? ref.location.path : "";
  await store.putFile(ref.id, path, { signal });
  return { ...ref, location: { kind: "object", key: ref.id } };
}

/** A scan of segments in order of arrival. */
export const taskOf = <Plan extends ScanPlan>(plan: Plan, refs: readonly LocalRef[]) =>
  ({ plan, sources: refs.map((ref, sequence) => ({ ref, sequence })) }) satisfies ScanTask<
    Plan,
    LocalRef
  >;

/** Lines that do not get smaller when they are compressed, so that segments have many slots. */
function makeRows(seed: number, count: number) {
  const random = seededRandom(seed);
  const word = () => random(2 ** 32).toString(36);
  return Array.from({ length: count }, (_, i) => {
    const noise = Array.from({ length: 60 }, word).join("");
    return row(
      `app${i % 3}`,
      seed * 1000 + i,
      `${i % 1000 === 0 ? "needle" : "hay"} ${i} ${noise}`,
      {
        trace: word(),
      },
    );
  });
}

/** The jobs of a thread, in this one. */
function poolOf() {
  const jobs = scanJobs() as Record<
    string,
    (payload: unknown, context: JobContext) => ReturnType<JobHandler>
  >;
  const context = { check: () => {}, signal } as Partial<JobContext> as JobContext;
  const runs: string[] = [];
  const payloads: unknown[] = [];
  const run = async (name: string, payload: unknown) => {
    runs.push(name);
    payloads.push(payload);
    const { value } = await (jobs[name] as NonNullable<(typeof jobs)[string]>)(payload, context);
    return value;
  };
  const broadcast = (name: string, payload: unknown) => void run(name, payload);
  /** Whether the first source of each job of labels came with its index. */
  const images = () =>
    payloads.flatMap((payload, i) =>
      runs[i] === "labels" ? ["image" in (payload as LabelTask<LocalRef>).sources[0]!.ref] : [],
    );
  return { runs, images, pool: new ScanPool({ run, broadcast } as never) };
}
