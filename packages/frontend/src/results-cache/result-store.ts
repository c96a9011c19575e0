import { createHash } from "node:crypto";
import type { Querier } from "@skald/contracts";
import type { CacheKind } from "@skald/model";

/** Keeps answers of a kind under keys, and may forget any of them at any time. It never fails: what it cannot give is absent. */
export interface ResultStore {
  /** What is kept under each key, in order. */
  get(keys: readonly string[], signal: AbortSignal): Promise<readonly (Uint8Array | undefined)[]>;
  /** Keeps a value; nobody waits for it. */
  put(key: string, value: Uint8Array<ArrayBuffer>): void;
  /** Bytes of the largest value that it takes. */
  readonly maxValueBytes: number;
  /** Whether values are worth to be compressed. */
  readonly compress: boolean;
}

/** Where answers of each kind are kept; those that are absent are not. */
export type ResultStores = Readonly<Partial<Record<CacheKind, ResultStore>>>;

/** Where a cache keeps its answers, and who knows which of them still hold. */
export interface CacheDeps {
  readonly store: ResultStore;
  readonly changes: Querier<"changes">;
  /** More bytes are not read here: `refuse` says what is thrown. */
  readonly maxBytes?: number;
  readonly refuse?: (bytes: number) => Error;
}

/** Throws what `refuse` says when there is more to be read than may be. */
export function checkSize({ maxBytes, refuse }: CacheDeps, bytes: number): void {
  if (maxBytes !== undefined && refuse !== undefined && bytes > maxBytes) throw refuse(bytes);
}

/** A key that is short, and another one for whatever else is asked. */
export function resultKey(kind: CacheKind, asked: unknown): string {
  const text = JSON.stringify(asked, (_, value) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  return `${kind}:${createHash("sha256").update(text).digest("base64url")}`;
}
