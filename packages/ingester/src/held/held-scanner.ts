import type { AnswerOf, HeldKind, Scanner, ScanOptions, SourceRef, TaskOf } from "@skald/contracts";
import { refsOf, withRefs } from "@skald/scan";
import type { LocalRef } from "@skald/storage";
import type { Views } from "./views.js";

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
