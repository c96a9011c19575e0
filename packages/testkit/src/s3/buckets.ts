import { createHash, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface StoredObject {
  readonly body: Uint8Array;
  readonly etag: string;
  readonly modifiedMs: number;
  /** The headers of its put that its answers have too. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Listings that do not show it yet. */
  late: number;
}

export interface OpenUpload {
  readonly key: string;
  readonly headers: IncomingHttpHeaders;
  readonly parts: Map<number, Buffer>;
}

export interface PageRequest {
  readonly prefix: string;
  readonly delimiter: string;
  readonly after: string;
  readonly maxKeys: number;
}

/** One page of a listing. */
export interface Page extends PageRequest {
  readonly objects: readonly { readonly key: string; readonly object: StoredObject }[];
  readonly prefixes: readonly string[];
  /** The last name of the page when there are more. */
  readonly next: string | undefined;
}

/** Objects and uploads of a bucket, in memory. */
export class Buckets {
  readonly uploads = new Map<string, OpenUpload>();
  readonly #objects = new Map<string, StoredObject>();

  keys(): string[] {
    return [...this.#objects.keys()].sort();
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  put(
    key: string,
    body: Uint8Array,
    { headers, late }: { readonly headers: IncomingHttpHeaders; readonly late: number },
  ): StoredObject {
    const object = {
      body,
      etag: `"${createHash("md5").update(body).digest("hex")}"`,
      modifiedMs: Date.now(),
      metadata: keptHeaders(headers),
      late,
    };
    this.#objects.set(key, object);
    return object;
  }

  delete(key: string): void {
    this.#objects.delete(key);
  }

  /** Listings show every object from now on. */
  showAll(): void {
    for (const object of this.#objects.values()) object.late = 0;
  }

  start(key: string, headers: IncomingHttpHeaders): string {
    const id = randomUUID();
    this.uploads.set(id, { key, headers, parts: new Map() });
    return id;
  }

  clear(): void {
    this.#objects.clear();
    this.uploads.clear();
  }

  page(request: PageRequest): Page {
    const { prefix, delimiter, after, maxKeys } = request;
    const objects: { key: string; object: StoredObject }[] = [];
    const prefixes: string[] = [];
    let last = "";
    for (const key of this.keys()) {
      const object = this.#objects.get(key) as StoredObject;
      if (!key.startsWith(prefix)) continue;
      const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      const name = end < 0 ? key : key.slice(0, end + 1);
      if (name <= after || name === last) continue;
      if (object.late > 0) {
        object.late--;
        continue;
      }
      if (objects.length + prefixes.length === maxKeys) {
        return { ...request, objects, prefixes, next: last };
      }
      last = name;
      if (end < 0) objects.push({ key, object });
      else prefixes.push(name);
    }
    return { ...request, objects, prefixes, next: undefined };
  }
}

const kept = /^(x-amz-meta-.*|x-amz-server-side-encryption.*|x-amz-storage-class)$/;

function keptHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (kept.test(name) && typeof value === "string") found[name] = value;
  }
  return found;
}
