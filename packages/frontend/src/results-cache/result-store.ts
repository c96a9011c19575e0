import { createHash } from "node:crypto";
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

/** A key that is short, and another one for whatever else is asked. */
export function resultKey(kind: CacheKind, asked: unknown): string {
  const text = JSON.stringify(asked, (_, value) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  return `${kind}:${createHash("sha256").update(text).digest("base64url")}`;
}
