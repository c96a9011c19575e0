import type { MatchedRows, MatchTask, Scanner } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import { refsOf, scanMatches, segmentSource, uniteMasks } from "@skald/scan";
import { bytesRange, type ObjectStore, openSegment, segmentKey } from "@skald/storage";
import { signal } from "./requests.js";

/** Looks for rows in the segments of a store, and writes down in which. */
export class StoreScanner implements Scanner<SegmentRef, "matches"> {
  readonly looked: string[] = [];
  /** Called before each look; may throw. */
  onLook: (id: string) => void = () => {};
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async run(_: "matches", task: MatchTask<SegmentRef>): Promise<MatchedRows> {
    const [ref] = refsOf(task) as [SegmentRef];
    this.looked.push(ref.id);
    this.onLook(ref.id);
    const key = segmentKey(ref);
    const bytes = await this.#store.get(key, { signal });
    const source = segmentSource(openSegment(bytesRange(key, bytes), ref));
    const { masks, rowCount } = scanMatches(task, () => source, { check: () => {} });
    return { mask: uniteMasks(masks), rowCount };
  }
}
