import type { ScanKind, TaskOf, TaskSource } from "@skald/contracts";

interface Sources<Ref> {
  readonly sources: readonly TaskSource<Ref>[];
}

/** What the sources of a task are named by. */
export function refsOf<Ref>({ sources }: Sources<Ref>): Ref[] {
  return sources.map(({ ref }) => ref);
}

/** Sources of a task, named by references. */
export function sourcesOf<Ref>(refs: readonly Ref[]): TaskSource<Ref>[] {
  return refs.map((ref) => ({ ref }));
}

/** The same task, its sources named by other references, in the same order. */
export function withRefs<K extends ScanKind, Ref>(
  task: Sources<unknown>,
  refs: readonly Ref[],
): TaskOf<K, Ref> {
  const sources = task.sources.map((source, i) => ({ ...source, ref: refs[i] }));
  return { ...task, sources } as unknown as TaskOf<K, Ref>;
}
