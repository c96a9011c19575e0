import type { Line } from "../api/lines.js";
import { formatTime } from "../state/range.js";

/** Which rows of a list are chosen: one is current, and a range or single ones may be picked. */
export class Selection {
  at = -1;
  #anchor = -1;
  #picked = new Set<number>();

  has = (index: number): boolean => this.#picked.has(index);

  get size(): number {
    return this.#picked.size;
  }

  /** The picked rows in order, or else the current one. */
  rows(): number[] {
    if (this.#picked.size === 0) return this.at < 0 ? [] : [this.at];
    return [...this.#picked].sort((a, b) => a - b);
  }

  /** Makes a row the current one. With `extend` all rows from the last start on are picked, with `toggle` that one as well. */
  pick(index: number, how: { readonly extend?: boolean; readonly toggle?: boolean } = {}): void {
    if (how.extend) {
      const from = this.#anchor < 0 ? Math.max(0, this.at) : this.#anchor;
      this.#anchor = from;
      this.#picked = new Set();
      for (let row = Math.min(from, index); row <= Math.max(from, index); row++)
        this.#picked.add(row);
    } else if (how.toggle) {
      if (!this.#picked.delete(index)) this.#picked.add(index);
      this.#anchor = index;
    } else {
      this.#picked.clear();
      this.#anchor = index;
    }
    this.at = index;
  }

  all(count: number): void {
    this.#picked = new Set(Array.from({ length: count }, (_, index) => index));
  }

  clear(): void {
    this.#picked.clear();
    this.#anchor = -1;
    this.at = -1;
  }
}

/** Lines as texts to copy: as stored, with their times, or as JSON lines. */
export function copyText(lines: readonly Line[], as: "text" | "timed" | "jsonl"): string {
  return lines
    .map((line) => {
      if (as === "text") return line.text;
      const time = `${formatTime(line.ns, "utc", "ns").replace(" ", "T")}Z`;
      if (as === "timed") return `${time} ${line.text}`;
      const { stream, metadata, text } = line;
      return JSON.stringify({ time, labels: { ...stream.labels, ...metadata }, line: text });
    })
    .join("\n");
}
