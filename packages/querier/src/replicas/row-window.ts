import { hash } from "node:crypto";
import type { LogResult } from "@skald/logql";
import { type Labels, paddingBytes } from "@skald/model";

/** Keys of one generation; two are held. */
const maxKeys = 50_000;
/** Copies of a row come within this, ms: a generation is no older. */
const maxAgeMs = 30_000;

/** How often a row was shown, and how often each instance had it. */
interface Known {
  shown: number;
  readonly had: Map<string, number>;
}

/**
 * Lets each row through once of those that several instances have. Rows are the same that are of one stream with the same
 * time, line and metadata; what one instance has twice is let through twice. Copies that are far apart are both let through.
 */
export class RowWindow {
  #young = new Map<string, Known>();
  #old = new Map<string, Known>();
  #sinceMs = 0;

  /** The rows that no other instance had, in their order; undefined when there are none. */
  newRows(instance: string, rows: LogResult, nowMs: number): LogResult | undefined {
    const keyOf = keysOf(rows);
    const order: number[] = [];
    for (let row = 0; row < rows.rowCount; row++) {
      this.age(nowMs);
      const known = this.#find(keyOf(row));
      const had = (known.had.get(instance) ?? 0) + 1;
      known.had.set(instance, had);
      if (had <= known.shown) continue;
      known.shown = had;
      order.push(row);
    }
    if (order.length === rows.rowCount) return rows;
    return order.length === 0 ? undefined : pickRows(rows, order);
  }

  /** Forgets what is old. */
  age(nowMs: number): void {
    if (this.#young.size < maxKeys && nowMs - this.#sinceMs < maxAgeMs) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#sinceMs = nowMs;
  }

  #find(key: string): Known {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const known = this.#old.get(key) ?? { shown: 0, had: new Map<string, number>() };
    this.#young.set(key, known);
    return known;
  }
}

function keysOf({ labels, labelSet, timestamps, lines }: LogResult): (row: number) => string {
  const texts = labels.map(({ labels: all, categories: { stream, structuredMetadata } }) =>
    hash("sha1", JSON.stringify([all, stream, structuredMetadata].map(pairsOf)), "base64"),
  );
  const { bytes, offsets } = lines;
  return (row) => {
    const line = hash("sha1", bytes.subarray(offsets[row], offsets[row + 1]), "base64");
    return `${timestamps[row]}${texts[labelSet[row]!]}${line}`;
  };
}

function pairsOf({ names, values }: Labels) {
  return [names, values];
}

function pickRows(rows: LogResult, order: readonly number[]): LogResult {
  const { bytes, offsets } = rows.lines;
  const picked = order.map((row) => bytes.subarray(offsets[row], offsets[row + 1]));
  const ends = new Uint32Array(order.length + 1);
  for (const [i, { length }] of picked.entries()) ends[i + 1] = ends[i]! + length;
  const size = ends[order.length]!;
  const joined = new Uint8Array(size + paddingBytes);
  for (const [i, line] of picked.entries()) joined.set(line, ends[i]);
  return {
    ...rows,
    rowCount: order.length,
    timestamps: BigInt64Array.from(order, (row) => rows.timestamps[row]!),
    labelSet: Uint32Array.from(order, (row) => rows.labelSet[row]!),
    lines: { bytes: joined.subarray(0, size), offsets: ends },
  };
}
