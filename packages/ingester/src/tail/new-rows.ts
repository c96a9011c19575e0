import type { TailStretch } from "@skald/scan";
import type { HeadBlock } from "@skald/storage";
import type { TenantAppend } from "../tenant/tenant.js";

/** Rows of a tenant that were published and that no tail has looked at yet, as stretches of the blocks that hold them. */
export class NewRows {
  readonly #stretches = new Map<HeadBlock, { from: number; to: number }>();
  #lineBytes = 0;

  get lineBytes(): number {
    return this.#lineBytes;
  }

  get isEmpty(): boolean {
    return this.#stretches.size === 0;
  }

  /** Takes note of what a push has put into heads; nothing is copied. */
  note({ heads }: TenantAppend): void {
    for (const { head, before, after } of heads.values()) {
      // The memory must stay as it is when the head is sealed.
      head.viewed = true;
      const first = Math.max(0, before.blocks - 1);
      for (let i = first; i < after.blocks; i++) {
        const block = head.blocks[i] as HeadBlock;
        const from = i === before.blocks - 1 ? before.rows : 0;
        this.#add(block, from, i === after.blocks - 1 ? after.rows : block.rowCount);
      }
    }
  }

  /** Hands over all of them. */
  take(): { readonly blocks: TailStretch[]; readonly streams: Uint32Array } {
    const blocks: TailStretch[] = [];
    const streams = new Set<number>();
    for (const [block, { from, to }] of this.#stretches) {
      const ref = block.view();
      blocks.push({ ref, rowFrom: from, rowTo: to });
      const { runStart, runStream } = block.columns;
      // Newest runs last: those of the stretch are few beside the others.
      for (let run = ref.runCount - 1; run >= 0; run--) {
        if (runStart[run]! < to) streams.add(runStream[run]!);
        if (runStart[run]! <= from) break;
      }
    }
    this.#stretches.clear();
    this.#lineBytes = 0;
    return { blocks, streams: Uint32Array.from(streams).sort() };
  }

  #add(block: HeadBlock, from: number, to: number): void {
    if (from >= to) return;
    const { lineOffset } = block.columns;
    this.#lineBytes += lineOffset[to]! - lineOffset[from]!;
    const known = this.#stretches.get(block);
    if (known === undefined) this.#stretches.set(block, { from, to });
    else known.to = to;
  }
}
