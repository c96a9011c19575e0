import { dirname } from "node:path";
import { syncInTurn } from "@skald/storage";
import { mkdir, open, readFile, rename } from "@skald/storage/files";
import { decodeRequestFile, encodeRequestFile, type StoredRequest } from "./request-store.js";

/** Keeps what this process knows of delete requests on its disk, for a start while the store does not answer, and for what is damaged there. */
export class LocalCopy {
  readonly #path: string;
  #written = "";

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * What was written last; undefined when there is nothing that can be read. What a later program wrote is no loss: the store
   * has all of it.
   */
  async read(): Promise<readonly StoredRequest[] | undefined> {
    try {
      return decodeRequestFile(this.#path, await readFile(this.#path)) as StoredRequest[];
    } catch {
      return undefined;
    }
  }

  /** Replaces the copy, unless it is the same. */
  async write(requests: readonly StoredRequest[]): Promise<void> {
    const text = Buffer.from(encodeRequestFile(requests)).toString();
    if (text === this.#written) return;
    await mkdir(dirname(this.#path), { recursive: true });
    const file = await open(`${this.#path}.tmp`, "w");
    try {
      await file.writeFile(text);
      await syncInTurn(() => file.sync());
    } finally {
      await file.close();
    }
    await rename(`${this.#path}.tmp`, this.#path);
    this.#written = text;
  }
}
