import { errorCodeOf } from "@skald/model";
import { LRUCache } from "lru-cache";
import { parseDayIndexKey } from "../object-store/keys.js";
import type { CallOptions, ObjectInfo, ObjectStore } from "../object-store/object-store.js";
import type { IndexImage } from "../segment/index-image.js";
import { DayIndex } from "./day-index.js";

/** Bytes of the day indexes that are kept open, and how many those are at most. */
const maxOpenBytes = 256 * 1024 * 1024;
const maxOpen = 1000;

export interface OpenedDaysOptions {
  readonly store: Pick<ObjectStore, "get">;
  readonly decode: (name: string, bytes: Uint8Array) => Promise<IndexImage>;
  readonly onCorrupt: (error: unknown, key: string) => void;
}

/** Reads the day indexes of a store, and keeps those that were read lately. */
export class OpenedDays {
  readonly #options: OpenedDaysOptions;
  readonly #open = new LRUCache<string, DayIndex>({
    max: maxOpen,
    maxSize: maxOpenBytes,
    // One that is larger has all of it to itself.
    sizeCalculation: ({ image }) => Math.min(image.byteLength, maxOpenBytes),
  });

  constructor(options: OpenedDaysOptions) {
    this.#options = options;
  }

  /**
   * The newest index among the objects of a day, or the one before it where that is damaged; undefined when there is none. Throws
   * `internal` when all are damaged, and what the store throws.
   */
  async newest(
    objects: readonly ObjectInfo[],
    options: CallOptions,
  ): Promise<DayIndex | undefined> {
    let damage: unknown;
    for (const object of indexesOf(objects)) {
      try {
        return await this.#read(object, options);
      } catch (error) {
        if (errorCodeOf(error) !== "internal") throw error;
        this.#options.onCorrupt(error, object.key);
        damage ??= error;
      }
    }
    if (damage !== undefined) throw damage;
    return undefined;
  }

  async #read({ key, sizeBytes, modifiedMs }: ObjectInfo, options: CallOptions): Promise<DayIndex> {
    // Where puts are not conditional two compactors may have written one generation.
    const version = `${key} ${sizeBytes} ${modifiedMs}`;
    const known = this.#open.get(version);
    if (known !== undefined) return known;
    const bytes = await this.#options.store.get(key, options);
    const index = new DayIndex(await this.#options.decode(key, bytes));
    this.#open.set(version, index);
    return index;
  }
}

/** The day indexes among objects, the newest first. */
export function indexesOf(objects: readonly ObjectInfo[]): ObjectInfo[] {
  return objects
    .filter(({ key }) => parseDayIndexKey(key) !== undefined)
    .sort((a, b) => (a.key < b.key ? 1 : -1));
}
