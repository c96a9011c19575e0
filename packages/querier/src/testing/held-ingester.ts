import type {
  HeadRef,
  HeldKind,
  Ingester,
  Scanner,
  ScanOptions,
  SelectRequest,
  SourceRef,
  TaskOf,
} from "@skald/contracts";
import type { SegmentRef, TimeRange } from "@skald/model";
import { refsOf, sourcesOf, withRefs } from "@skald/scan";
import type { HeadView, LocalRef } from "@skald/storage";
import type { LocalScanner } from "./local-scanner.js";

/** An ingester as seen from another process: its heads are known by name only. */
export function ingesterOf(
  scanner: LocalScanner,
  held: (request: TimeRange & { readonly tenant: string }) => LocalRef[],
): Ingester {
  const unused = () => Promise.reject(new Error("not for queries"));
  const heads = new Map<string, HeadView>();
  const local = (ref: SegmentRef | HeadRef): LocalRef => {
    if (ref.kind === "segment") return ref;
    if (!openViews.has(ref.view)) throw new Error(`the view ${ref.view} was released`);
    return heads.get(`${ref.view} ${ref.id}`) as HeadView;
  };
  const run: Scanner["run"] = async <K extends HeldKind>(
    kind: K,
    task: TaskOf<K>,
    options: ScanOptions,
  ) => scanner.run(kind, withRefs<K, LocalRef>(task, refsOf<SourceRef>(task).map(local)), options);
  /** Every second time, so that queries have to ask for the others. */
  const compare = async (
    { matchers, compare: wish, share }: SelectRequest,
    sources: SourceRef[],
  ) => {
    if (wish === undefined || share === undefined || views % 2 === 0) return {};
    const { windows, minutesEach } = wish;
    const options = { signal: new AbortController().signal, share };
    const found = windows.map(async (range) => ({
      ...range,
      sources: sources.length,
      digests: await run(
        "digests",
        { sources: sourcesOf(sources), matchers, ...range, minutesEach },
        options,
      ),
    }));
    return { compared: { windows: await Promise.all(found) } };
  };
  return {
    push: unused,
    flush: unused,
    select: async (request) => {
      const view = `v${views++}`;
      openViews.add(view);
      const sources = held(request).map((ref) => {
        if (ref.kind === "segment") return ref;
        heads.set(`${view} ${ref.id}`, ref);
        const { kind, id, tenant, minNs, maxNs, sizeBytes } = ref;
        return { kind, id, tenant, minNs, maxNs, view, sizeBytes };
      });
      return { view, sources, ...(await compare(request, sources)) };
    },
    changes: async ({ spans }) => ({
      spans: spans.map((span) => ({ token: "", changed: [span] })),
    }),
    release: async (view) => {
      openViews.delete(view);
    },
    run,
  };
}

let views = 0;

/** Views of the ingester of `querierOf` that were selected and not released. */
export const openViews = new Set<string>();
