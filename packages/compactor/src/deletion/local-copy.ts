import { dirname } from "node:path";
import { mkdir, open, readFile, rename } from "@skald/storage/files";
import type { StoredRequest } from "./request-store.js";

/** Keeps what this process knows of delete requests on its disk, for a start while the store does not answer. */
export class LocalCopy {
  readonly #path: string;
  #written = "";

  constructor(path: string) {
    this.#path = path;
  }

  /** What was written last; undefined when there is nothing that can be read. */
  async read(): Promise<readonly StoredRequest[] | undefined> {
    try {
      return JSON.parse(await readFile(this.#path, "utf8")) as StoredRequest[];
    } catch {
      return undefined;
    }
  }

  /** Replaces the copy, unless it is the same. */
  async write(requests: readonly StoredRequest[]): Promise<void> {
    const text = JSON.stringify(requests);
    if (text === this.#written) return;
    await mkdir(dirname(this.#path), { recursive: true });
    const file = await open(`${this.#path}.tmp`, "w");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${this.#path}.tmp`, this.#path);
    this.#written = text;
  }
}
