import type { WalPosition } from "@skald/storage";
import type { LocalSegments } from "../flush/local-segments.js";

/**
 * Knows from the ids of local segments which rows of the log are sealed. The segment of a head has its id; one that
 * was sealed before replay had read all rows of its head is `<head>_<file>_<offset>`, the place of its last row.
 */
export class SealedHeads {
  readonly #segments: LocalSegments;
  /** By tenant and head: the place up to which rows are in segments. */
  readonly #parts = new Map<string, WalPosition>();

  constructor(segments: LocalSegments) {
    this.#segments = segments;
    for (const segment of segments.files()) {
      const part = partOf(segment.ref.id);
      if (part === undefined) continue;
      segment.lastWalFile = part.position.file;
      this.add(segment.ref.tenant, part.head, part.position);
    }
  }

  /** Remembers that a part of a head was sealed. */
  add(tenant: string, head: string, position: WalPosition): void {
    const key = `${tenant}\n${head}`;
    const known = this.#parts.get(key);
    if (known === undefined || isBefore(known, position)) this.#parts.set(key, position);
  }

  /** Whether the row of a head at a place of the log is in a segment. */
  covers(tenant: string, head: string, position: WalPosition): boolean {
    const whole = this.#segments.get(tenant, head);
    if (whole !== undefined) {
      whole.lastWalFile = Math.max(whole.lastWalFile, position.file);
      return true;
    }
    const known = this.#parts.get(`${tenant}\n${head}`);
    return known !== undefined && !isBefore(known, position);
  }
}

/** Id of the segment with the rows of a head up to a place of the log. */
export function partId(head: string, { file, offset }: WalPosition): string {
  return `${head}_${file}_${offset}`;
}

function partOf(id: string): { head: string; position: WalPosition } | undefined {
  const match = /^(.+)_(\d+)_(\d+)$/.exec(id);
  if (match === null) return undefined;
  const [, head = "", file, offset] = match;
  return { head, position: { file: Number(file), offset: Number(offset) } };
}

function isBefore(a: WalPosition, b: WalPosition): boolean {
  return a.file < b.file || (a.file === b.file && a.offset < b.offset);
}
