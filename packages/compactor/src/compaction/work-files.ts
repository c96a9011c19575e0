import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { SegmentRef } from "@skald/model";
import type { CallOptions, ObjectRange, ObjectStore } from "@skald/storage";
import { mkdir, open, rm } from "@skald/storage/files";

/** Bytes that are fetched of an object at a time. */
const fetchBytes = 8 * 1024 * 1024;

/** The files of a compactor: what it fetched to merge it, and what it wrote before the store has it. None outlives the process. */
export class WorkFiles {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = join(dir, "merge");
  }

  /** Removes what processes before left. */
  async open(): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
    await mkdir(this.#dir, { recursive: true });
  }

  newPath(): string {
    return join(this.#dir, `${randomUUID()}.parquet`);
  }

  /** The segment as a file of this machine; of one that is elsewhere a copy is fetched. */
  async local(
    ref: SegmentRef,
    store: Pick<ObjectStore, "getRange">,
    options: CallOptions,
  ): Promise<SegmentRef & { readonly location: { readonly kind: "file"; readonly path: string } }> {
    const { location } = ref;
    if (location.kind === "file") return { ...ref, location };
    const path = this.newPath();
    try {
      await this.#fetch(ref, path, (range) => store.getRange(location.key, range, options));
    } catch (error) {
      await this.remove(path);
      throw error;
    }
    return { ...ref, location: { kind: "file", path } };
  }

  async #fetch(
    { sizeBytes }: SegmentRef,
    path: string,
    read: (range: ObjectRange) => Promise<Uint8Array>,
  ): Promise<void> {
    const file = await open(path, "w");
    try {
      for (let offset = 0; offset < sizeBytes; offset += fetchBytes) {
        const length = Math.min(fetchBytes, sizeBytes - offset);
        await file.writeFile(await read({ offset, length }));
      }
    } finally {
      await file.close();
    }
  }

  /** Removes a file of this folder; of another one it does nothing. */
  async remove(path: string): Promise<void> {
    if (path.startsWith(this.#dir)) await rm(path, { force: true });
  }
}
